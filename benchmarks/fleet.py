"""Fleets: growth with the number of machines; what a fleet costs is in fleet_cost.py.

    python benchmarks/fleet.py                         # 10 to 1,000 machines of 5,000 rows × 10
    python benchmarks/fleet.py --machines 10000 --rows 1000 --channels 3
    python benchmarks/fleet.py --quick                 # small fleets, to see that it works

Growth: seconds, processor seconds and peak memory of `vace detect --by machine --jobs 2 --out`,
each fleet in a process of its own. Memory is that of all processes of the run together, looked at
every half second. Where other work shares the machine, processor seconds tell more than seconds;
`load` is the mean number of busy processes that were not ours. Adds lines to fleet.csv in
benchmarks/results; --quick writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import RESULTS, append

SEED = 0
STEP = 60  # seconds
QUICK = ["--patch-length", "16", "--set", "encoders=1"]
START = "from vace_ad.cli.main import main; import sys; sys.argv[0] = 'vace'; main()"
WEEK = 7 * 86_400


def machine(seed: int, rows: int, channels: int, common: np.ndarray | None = None) -> np.ndarray:
    """Waves and noise that follow each other, (rows, channels)."""
    rng = np.random.default_rng([SEED, seed])
    phase = 2 * np.pi * np.arange(rows)[:, None] / rng.uniform(20, 200, 3) + rng.uniform(0, 6, 3)
    drive = np.sin(phase)
    if common is not None:
        drive = np.column_stack([drive, common])
    mixed = drive @ rng.normal(size=(drive.shape[1], channels))
    return mixed + 0.2 * rng.normal(size=(rows, channels))


def write_fleet(
    path: Path,
    machines: int,
    rows: int,
    channels: int,
    *,
    faults: int = 0,
    correlated: bool = False,
) -> None:
    """A keyed Parquet file, written machine by machine; a common fault hits many at once."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(SEED)
    common = np.cumsum(rng.normal(size=rows)) * 0.02 if correlated else None
    time = np.datetime64("2026-01-01", "ns") + np.arange(rows) * np.timedelta64(STEP * 10**9, "ns")
    writer = None
    for i in range(machines):
        x = machine(i, rows, channels, common)
        if i < faults:
            x[rows * 4 // 5 : rows * 4 // 5 + 60, : max(1, channels // 3)] += 8
        frame = pl.DataFrame({"time": time, **{f"s{k}": x[:, k] for k in range(channels)}})
        table = frame.with_columns(machine=pl.lit(f"m{i:05}")).to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def one(path: Path, options: list[str]) -> dict[str, Any]:
    """Run the command in a process of its own; its answer, seconds, peak memory, others' load."""
    command = ["detect", str(path), "--by", "machine", "--json", *options]
    started, before = time.perf_counter(), _processor_seconds()
    busy = _busy_seconds()
    with tempfile.TemporaryFile("w+") as answer:
        run = subprocess.Popen([sys.executable, "-c", START, *command], stdout=answer)
        peak = 0.0
        while True:
            peak = max(peak, sum(map(_resident_mb, _tree(run.pid))))
            try:
                run.wait(0.5)
                break
            except subprocess.TimeoutExpired:
                continue
        if run.returncode:
            raise SystemExit(f"the command ended with status {run.returncode}")
        answer.seek(0)
        found = json.load(answer)
    seconds, cpu = time.perf_counter() - started, _processor_seconds() - before
    load = max(_busy_seconds() - busy - cpu, 0.0) / seconds
    return {"answer": found, "seconds": seconds, "cpu": cpu, "peak_mb": peak, "load": load}


def _processor_seconds() -> float:
    """Of all children that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _busy_seconds() -> float:
    """Processor seconds that anybody used since the machine started."""
    user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def _tree(process: int) -> Iterator[int]:
    """A process, its children and theirs."""
    yield process
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = tasks.read_text().split()
        except OSError:  # it has ended
            continue
        for child in children:
            yield from _tree(int(child))


def _resident_mb(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth(machines: int, rows: int, channels: int, jobs: int, quick: bool) -> None:
    """One fleet, and its line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.parquet"
        write_fleet(path, machines, rows, channels, faults=max(1, machines // 50))
        size = path.stat().st_size / 2**20
        options = ["--budget", "3 per week", "--jobs", str(jobs), "--out", f"{folder}/out"]
        found = one(path, [*options, *(QUICK if quick else [])])
    answer = found["answer"]["machines"]
    line = {
        "machines": machines,
        "rows": rows,
        "channels": channels,
        "jobs": jobs,
        "file_mb": round(size, 1),
        "seconds": round(found["seconds"], 1),
        "cpu_seconds": round(found["cpu"], 1),
        "cpu_seconds_each": round(found["cpu"] / machines, 3),
        "peak_mb": round(found["peak_mb"]),
        "load": round(found["load"], 2),
        "failed": sum(m["status"] in ("failed", "short") for m in answer),
    }
    print(line, flush=True)
    if not quick:
        append([{**line, "seed": SEED}], RESULTS / "fleet.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--machines", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--channels", type=int, default=10)
    given = parser.parse_args()
    if given.quick:
        given.machines, given.rows, given.channels = [2, 4], 600, 3
    for machines in given.machines:
        growth(machines, given.rows, given.channels, given.jobs, given.quick)


if __name__ == "__main__":
    main()
