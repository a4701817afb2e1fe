"""What the studies share: places, options, series, processes, and differences between rules."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from vace_ad.executors.local import thread_limits
from vace_study.catalog import Entry
from vace_study.compare import paired
from vace_study.protocols import Exam, exam
from vace_study.series import load

STUDY = Path(__file__).parents[1]
sys.path.insert(0, str(STUDY.parent / "benchmarks"))  # CSV files that say where they come from
from record import DATA, ROOT, Line, append, origin, read, write  # noqa: E402

__all__ = [
    "DATA", "RESULTS", "ROOT", "Line", "append", "by_series", "difference", "done_already",
    "in_processes", "options", "origin", "read", "test_part", "write",
]  # fmt: skip
RESULTS = STUDY / "results"


def options(doc: str) -> argparse.Namespace:
    """The options that every study has."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of TSB-AD-M")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files")
    parser.add_argument(
        "--minutes", type=float, default=60, help="start no work later; 0 only sums up"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--series", default="*", help="glob of names, to try the study out")
    return parser.parse_args()


def test_part(entry: Entry) -> Exam:
    """A series under the protocol test-only."""
    return exam(load(entry.path), "test-only")


def in_processes(
    work: Callable[[Any], Iterable[Line]],
    items: Sequence[Any],
    path: Path,
    jobs: int,
    minutes: float,
) -> None:
    """Append what `work` finds for each item to a CSV file, each item whole or not at all."""
    os.environ |= thread_limits(1)  # the processes inherit it before they load NumPy
    started, waiting = time.monotonic(), list(reversed(items))
    running: dict[Future[Iterable[Line]], Any] = {}
    done = 0
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        while True:
            while waiting and len(running) < jobs and _minutes_since(started) < minutes:
                item = waiting.pop()
                running[pool.submit(work, item)] = item
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                append(future.result(), path)
                done += 1
                took = f"{_minutes_since(started):.1f} minutes"
                print(f"[{done}/{len(items)}] {running.pop(future)}: {took}", flush=True)


def _minutes_since(moment: float) -> float:
    return (time.monotonic() - moment) / 60


def done_already(path: Path, *key: str) -> set[tuple[str, ...]]:
    """What a file holds, by these columns."""
    return {tuple(line[name] for name in key) for line in read(path)}


def by_series(lines: Iterable[Mapping[str, str]]) -> dict[str, float]:
    """The mean VUS-PR of each series over its seeds."""
    found: dict[str, list[float]] = {}
    for line in lines:
        found.setdefault(line["series"], []).append(float(line["vus_pr"]))
    return {series: float(np.mean(values)) for series, values in found.items()}


def difference(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Line:
    """The mean gain on the series both have, with the 95 % interval of a paired bootstrap."""
    found = paired(ours, theirs)
    if found is None:
        return {"gain": "", "low": "", "high": ""}
    numbers = {"gain": found.mean, "low": found.low, "high": found.high}
    return {name: "" if x is None else f"{x:.4f}" for name, x in numbers.items()}
