"""What a fleet costs beside its work: over one by one, on Ray, and in memory while rows are sorted.

    python benchmarks/fleet_cost.py                # minutes
    python benchmarks/fleet_cost.py --quick        # to see that it works; writes nothing

Overhead: processor seconds of `Fleet.fit_detect` on a keyed file against the same fits, events and
files written one machine after another, from a file each, in one process; in turn, so that other
work on the machine hits both. Ray: seconds and processor seconds of `--engine ray` against
`--jobs 2`, in turn, with the start of Ray in it. Sorting: peak memory of finding the machines of
files of growing size. Writes fleet-overhead.csv, fleet-ray.csv and fleet-sorting.csv.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
from record import RESULTS, Line, write

from fleet import QUICK, SEED, one, write_fleet
from vace_ad.alarms import Budget
from vace_ad.app.loading import load_table
from vace_ad.app.results import write_results
from vace_ad.app.run import Alarming, choose_training, fit_and_detect
from vace_ad.config import VACEConfig
from vace_ad.fleet.fleet import Fleet
from vace_ad.fleet.runner import per_machine
from vace_ad.frames.read_options import ReadOptions, TrainingOptions

BUDGET = Budget(3, "week")
SORT = """
import resource, sys, tempfile
from pathlib import Path
from vace_ad.frames.read_options import Reading
from vace_ad.fleet.entities import find_entities
with tempfile.TemporaryDirectory() as folder:
    found, _ = find_entities([sys.argv[1]], Reading(by="machine"), Path(folder) / "parts")
print(len(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def one_by_one(folder: Path, machines: int, config: VACEConfig, out: Path) -> None:
    """Each machine from its own file, as a person would do it in a loop."""
    alarming = Alarming(per_machine(BUDGET, machines))
    how = ReadOptions()
    for path in sorted(folder.glob("*.parquet")):
        loaded = load_table(path, how)
        training = choose_training(loaded, config, TrainingOptions(), how)
        run = fit_and_detect(loaded, training, config, alarming)
        write_results(run, out / path.stem, "parquet")


def as_fleet(path: Path, config: VACEConfig, out: Path) -> None:
    Fleet("machine", **config.to_dict()).fit_detect([path], budget=BUDGET, folder=out)


def overhead(machines: int, rows: int, channels: int, rounds: int, config: VACEConfig) -> Line:
    """The share of processor time that a fleet adds, in the median of rounds."""
    shares, alone, together = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keyed, each = folder / "fleet.parquet", folder / "each"
        write_fleet(keyed, machines, rows, channels, faults=1)
        each.mkdir()
        for (machine,), part in (
            pl.read_parquet(keyed).partition_by("machine", as_dict=True).items()
        ):
            part.drop("machine").write_parquet(each / f"{machine}.parquet")
        one_by_one(each, machines, config, folder / "warm")  # imports are nobody's
        for k in range(rounds):
            for way in ("alone", "fleet") if k % 2 else ("fleet", "alone"):
                began = time.process_time()
                if way == "alone":
                    one_by_one(each, machines, config, folder / f"alone{k}")
                    alone.append(time.process_time() - began)
                else:
                    as_fleet(keyed, config, folder / f"fleet{k}")
                    together.append(time.process_time() - began)
            shares.append(together[-1] / alone[-1] - 1)
    return {
        "machines": machines,
        "rows": rows,
        "channels": channels,
        "rounds": rounds,
        "cpu_seconds_one_by_one": round(median(alone), 2),
        "cpu_seconds_fleet": round(median(together), 2),
        "cpu_seconds_least_one_by_one": round(min(alone), 2),
        "cpu_seconds_least_fleet": round(min(together), 2),
        "overhead_percent": round(100 * median(shares), 1),
    }


def ray(machines: int, rows: int, channels: int, rounds: int, options: list[str]) -> list[Line]:
    """A line for each engine and round."""
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.parquet"
        write_fleet(path, machines, rows, channels, faults=1)
        for k in range(rounds):
            ways: dict[str, list[str]] = {"jobs 2": ["--jobs", "2"], "ray": ["--engine", "ray"]}
            for way, how in ways.items():
                out = ["--budget", "3 per week", "--out", f"{folder}/{way[:3]}{k}"]
                found = one(path, [*how, *out, *options])
                line: dict[str, Any] = {"engine": way, "round": k, "machines": machines}
                line |= {"rows": rows, "channels": channels}
                line |= {
                    "seconds": round(found["seconds"], 1),
                    "machine_seconds": round(_working(found["answer"]), 1),
                    "peak_mb": round(found["peak_mb"]),
                    "load": round(found["load"], 2),
                }
                print(line, flush=True)
                lines.append(line)
    return lines


def _working(answer: dict[str, Any]) -> float:
    """Seconds in machines' own tasks, all together."""
    return sum(machine["seconds"] for machine in answer["machines"])


def sorting(sizes: list[tuple[int, int]], channels: int) -> list[Line]:
    """Peak memory of finding the machines of a keyed file, each in a process of its own."""
    lines: list[Line] = []
    for machines, rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fleet.parquet"
            write_fleet(path, machines, rows, channels)
            began = time.perf_counter()
            run = subprocess.run(
                [sys.executable, "-c", SORT, str(path)], capture_output=True, text=True, check=True
            )
            found, peak = map(int, run.stdout.split())
            lines.append(
                {
                    "machines": found,
                    "rows": rows,
                    "channels": channels,
                    "file_mb": round(path.stat().st_size / 2**20),
                    "seconds": round(time.perf_counter() - began, 1),
                    "peak_mb": peak,
                }
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("overhead", "ray", "sorting"))
    parser.add_argument("--machines", type=int, default=100, help="of the fleets for Ray")
    parser.add_argument("--alone", type=int, default=12, help="machines of the overhead")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    config = VACEConfig()
    sizes = [(20, 5_000), (20, 50_000), (20, 250_000), (2_000, 2_500)]
    options: list[str] = []
    alone, rounds, rows, channels = given.alone, given.rounds, 5000, 10
    if given.quick:
        config = replace(config, patch_length=16, encoders=1)
        sizes, options, given.machines = [(4, 600), (8, 600)], QUICK, 2
        alone, rounds, rows, channels = 3, 1, 600, 3
    if given.only in (None, "sorting"):
        _keep(sorting(sizes, channels), "sorting", given.quick)
    if given.only in (None, "overhead"):
        line = overhead(alone, rows, channels, rounds, config)
        print(line, flush=True)
        _keep([line], "overhead", given.quick)
    if given.only in (None, "ray"):
        lines = ray(given.machines, rows, channels, min(rounds, 2), options)
        _keep(lines, "ray", given.quick)


def _keep(lines: list[Line], name: str, quick: bool) -> None:
    if not quick:
        write(lines, RESULTS / f"fleet-{name}.csv", seed=SEED)


if __name__ == "__main__":
    main()
