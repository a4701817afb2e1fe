"""Peak memory and throughput of fit and score on long tables, each case in a process of its own.

    python benchmarks/memory.py             # 1 M rows × 25 in memory; up to 10 M × 5 from Parquet
    python benchmarks/memory.py --quick     # small tables, to see that it works

Writes memory.csv and memory.png to benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import RESULTS, write
from speed import SEED

from vace_ad import VACE
from vace_ad.frames.table import parquet_chunks
from vace_study.memory import peak_mb

PIECE = 100_000  # rows written to a file at a time
OVERHEAD_MB = 600  # of libraries and buffers, beside three times the table


def make_rows(start: int, n_rows: int, n_channels: int) -> NDArray[np.float64]:
    """Waves and noise, the same whatever piece of the series is made, (n_rows, n_channels)."""
    rows = np.random.default_rng([SEED, start]).standard_normal((n_rows, n_channels))
    rows *= 0.1
    for channel in range(n_channels):
        rows[:, channel] += np.sin(np.arange(start, start + n_rows) / (5 + 3 * channel))
    return rows


def write_parquet(path: Path, n_rows: int, n_channels: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"sensor_{i}" for i in range(n_channels)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, n_rows, PIECE):
            rows = make_rows(start, min(PIECE, n_rows - start), n_channels)
            file.write_table(pa.Table.from_arrays(list(rows.T.copy()), schema=schema))


def from_memory(n_rows: int, n_channels: int) -> dict[str, Any]:
    """Fit and score one table."""
    table = make_rows(0, n_rows, n_channels)
    started = time.perf_counter()
    detector = VACE(random_state=SEED).fit(table)
    fitted = time.perf_counter()
    scores = detector.score(table)
    return _facts(started, fitted, len(scores))


def from_parquet(path: Path) -> dict[str, Any]:
    """Fit on a file, score it piece by piece."""
    started = time.perf_counter()
    detector = VACE(random_state=SEED).fit(path)
    fitted = time.perf_counter()
    n_rows = sum(len(scores) for scores in detector.score_chunks(parquet_chunks(path)))
    return _facts(started, fitted, n_rows)


def _facts(started: float, fitted: float, n_rows: int) -> dict[str, Any]:
    taken = time.perf_counter() - fitted
    return {
        "fit_seconds": round(fitted - started, 2),
        "score_seconds": round(taken, 2),
        "rows_per_second": round(n_rows / taken),
        "peak_mb": round(peak_mb() or 0),
    }


def in_own_process(case: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    if case["source"] == "parquet":
        return from_parquet(Path(case["path"]))
    return from_memory(case["rows"], case["channels"])


def measure(n_rows: int, n_channels: int, source: str, folder: Path) -> dict[str, Any]:
    """One line of the results."""
    case: dict[str, Any] = {"source": source, "rows": n_rows, "channels": n_channels}
    table_mb = n_rows * n_channels * 8 / 1e6
    extra: dict[str, Any] = {"path": str(folder / f"{n_rows}.parquet")}
    if source == "parquet":
        write_parquet(Path(extra["path"]), n_rows, n_channels)
    found = in_own_process({**case, **extra})
    line = {**case, "table_mb": round(table_mb), **found}
    if source == "memory":
        line["allowed_mb"] = round(3 * table_mb + OVERHEAD_MB)
    print(line, flush=True)
    return line


def draw(lines: Sequence[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    files = [line for line in lines if line["source"] == "parquet"]
    rows = [line["rows"] for line in files]
    titles = {"peak_mb": "peak memory, MB", "rows_per_second": "rows a second"}
    for axis, (key, title) in zip(axes, titles.items(), strict=True):
        values = [line[key] for line in files]
        axis.plot(rows, values, "o-", label="measured")
        axis.set(xlabel="rows", ylabel=title, xlim=0, ylim=(0, 1.4 * max(values)))
        axis.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes[0].plot(rows, [line["table_mb"] for line in files], "--", label="the table itself")
    axes[0].legend(frameon=False)
    figure.suptitle("default preset, 5 channels, from a Parquet file in pieces")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run_case(json.loads(options.case))))
        return
    shapes = [(1_000_000, 25, "memory")]
    shapes += [(n, 5, "parquet") for n in (1_000_000, 3_000_000, 10_000_000)]
    if options.quick:
        shapes = [(50_000, 25, "memory"), (100_000, 5, "parquet"), (200_000, 5, "parquet")]
    with tempfile.TemporaryDirectory() as folder:
        lines = [measure(*shape, Path(folder)) for shape in shapes]
    write(lines, options.out / "memory.csv", seed=SEED)
    draw(lines, options.out / "memory.png")


if __name__ == "__main__":
    main()
