"""Fleets: growth with the number of machines, and whether the fleet's budget is kept.

    python benchmarks/fleet.py                  # 10 to 1,000 machines of 5,000 rows × 10
    python benchmarks/fleet.py --quick          # small fleets, to see that it works; writes nothing

Growth: seconds and peak memory of `vace detect --by machine --jobs 2`, each fleet in a process of
its own. Budget: normal machines, independent and with a common driver, and the alarms that
people would get. Writes fleet.csv and fleet-budget.csv to benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import RESULTS, write

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


def one(path: Path, jobs: int, options: list[str]) -> dict[str, Any]:
    """Run the command in a process of its own; its answer, seconds and peak memory."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["detect", str(path), "--by", "machine", "--json", "--jobs", str(jobs)]
    run = subprocess.run(
        [sys.executable, "-c", START, *command, *options],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = after.ru_maxrss / 1024  # of the largest process so far
    return {"answer": json.loads(run.stdout), "seconds": seconds, "cpu": cpu, "peak_mb": peak}


def growth(sizes: list[int], rows: int, channels: int, jobs: int, quick: bool) -> None:
    options = QUICK if quick else []
    lines = []
    for machines in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fleet.parquet"
            write_fleet(path, machines, rows, channels, faults=max(1, machines // 50))
            found = one(path, jobs, ["--alarms-per-week", "3", *options])
        answer = found["answer"]["machines"]
        lines.append(
            {
                "machines": machines,
                "rows": rows,
                "channels": channels,
                "jobs": jobs,
                "seconds": round(found["seconds"], 1),
                "seconds_each": round(found["seconds"] / machines, 3),
                "cpu_seconds_each": round(found["cpu"] / machines, 3),
                "peak_mb_of_a_process": round(found["peak_mb"]),
                "failed": sum(m["status"] in ("failed", "short") for m in answer),
            }
        )
        print(lines[-1], flush=True)
        if not quick:
            write(lines, RESULTS / "fleet.csv", seed=SEED)


def budgets(machines: int, rows: int, channels: int, jobs: int, quick: bool) -> None:
    """Alarms on normal fleets against a budget, and a fault that hits many at once."""
    options = QUICK if quick else []
    lines = []
    weeks = 0.7 * rows * STEP / WEEK  # the first 30 % train
    for kind, correlated, faults in (
        ("independent", False, 0),
        ("correlated", True, 0),
        ("a fault on a tenth of the machines at once", False, machines // 10),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fleet.parquet"
            write_fleet(path, machines, rows, channels, faults=faults, correlated=correlated)
            answer = one(path, jobs, ["--alarms-per-week", "3", *options])["answer"]
        events = sum(m["events"] for m in answer["machines"])
        incidents = answer["incidents"]
        lines.append(
            {
                "fleet": kind,
                "machines": machines,
                "rows": rows,
                "channels": channels,
                "budget_per_week": 3,
                "weeks": round(weeks, 3),
                "events": events,
                "incidents": len(incidents),
                "incidents_per_week": round(len(incidents) / weeks, 2),
                "largest_incident": max((i["machines"] for i in incidents), default=0),
            }
        )
        print(lines[-1], flush=True)
        if not quick:
            write(lines, RESULTS / "fleet-budget.csv", seed=SEED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--machines", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--budget-machines", type=int, default=1000)
    given = parser.parse_args()
    if given.quick:
        growth([2, 4], 600, 3, given.jobs, True)
        budgets(10, 600, 3, given.jobs, True)
        return
    growth(given.machines, 5000, 10, given.jobs, False)
    budgets(given.budget_machines, 5000, 10, given.jobs, False)


if __name__ == "__main__":
    main()
