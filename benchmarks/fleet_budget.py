"""The budget of a fleet: false alarms and faults, kept by all machines together or divided.

    OMP_NUM_THREADS=1 python benchmarks/fleet_budget.py --jobs 1      # 1,000 machines, 15 minutes
    python benchmarks/fleet_budget.py --kinds waves --machines 200 --name fleet-budget-waves.csv
    python benchmarks/fleet_budget.py --machines 40 --dry             # to see that it works

Machines are fitted on their first 40 % under "3 alarms a week over all machines". Together: the
fleet decides how strong an alarm is (vace_ad.fleet.threshold), as `vace detect --by` does. Divided:
each has a thousandth of the budget and the threshold that its own training extrapolates to. Both
judge the same detectors. A budget of one alarm in every ten machines, for all rows that are judged,
shows in counts what a fraction of an alarm cannot.

Machines are autoregressive processes mixed into three channels: independent ones; correlated ones,
which share a third process; wandering ones, which share a random walk, so that what is normal moves
away from training; and waves of three periods of their own that share a random walk. Fleets are
normal, or a tenth of the machines has a fault of 8 deviations in one channel, each at its own time,
or four tenths have it at once. Writes fleet-budget.csv, without the waves unless asked for.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np
import polars as pl
from record import RESULTS, Line, write

from fleet import SEED, STEP, WEEK
from vace_ad.alarms import Budget
from vace_ad.app.loading import load_frame
from vace_ad.app.run import Alarming, TrainingRows, detect_with, fit_detector
from vace_ad.config import VACEConfig
from vace_ad.fleet.entities import MachineRow
from vace_ad.fleet.incidents import find_incidents
from vace_ad.fleet.runner import per_machine
from vace_ad.fleet.task import row_of
from vace_ad.fleet.threshold import kept_to_budget, supported
from vace_ad.frames.read import ReadReport
from vace_ad.frames.read_options import ReadOptions
from vace_ad.progress import silent

CHANNELS, LONG = 3, 60  # channels; rows of a fault
FAULTY = 1  # channels that a fault shows in
TRAIN = 0.4
WAYS = ("together", "divided")
KINDS = ("independent", "correlated", "wandering", "waves")
FAULTS = {"none": 0.0, "scattered": 0.1, "at once": 0.4}  # share of the machines
LOOSE = 0.1  # alarms for a machine, of the looser budget
Found = dict[tuple[str, str], MachineRow]  # by way and fault


def autoregressive(rng: np.random.Generator, rows: int, memory: float) -> np.ndarray:
    """A process of variance 1 whose values follow each other, (rows,)."""
    x = rng.normal(size=rows)
    x[1:] *= np.sqrt(1 - memory**2)
    for t in range(1, rows):
        x[t] += memory * x[t - 1]
    return x


def machine(i: int, rows: int, kind: str) -> np.ndarray:
    """One machine of a fleet, (rows, CHANNELS)."""
    rng, common = np.random.default_rng([SEED, i]), np.random.default_rng([SEED, 0, 1])
    if kind == "waves":
        periods, phases = rng.uniform(20, 200, 3), rng.uniform(0, 6, 3)
        drives = list(np.sin(2 * np.pi * np.arange(rows) / periods[:, None] + phases[:, None]))
    else:
        drives = [autoregressive(rng, rows, rng.uniform(0.5, 0.95)) for _ in range(2)]
    if kind == "correlated":
        drives.append(autoregressive(common, rows, 0.95))
    elif kind in ("wandering", "waves"):
        drives.append(np.cumsum(common.normal(size=rows)) * 0.02)
    mixed = np.column_stack(drives) @ rng.normal(size=(len(drives), CHANNELS))
    return np.asarray(mixed + 0.2 * rng.normal(size=(rows, CHANNELS)))


def begin(i: int, rows: int, fault: str) -> int:
    """The first row of a machine's fault."""
    if fault == "at once":
        return rows * 4 // 5
    return int(np.random.default_rng([SEED, 1, i]).integers(rows // 2, rows - 2 * LONG))


def table(values: np.ndarray) -> pl.DataFrame:
    start = np.datetime64("2026-01-01", "ns")
    time = start + np.arange(len(values)) * np.timedelta64(STEP * 10**9, "ns")
    return pl.DataFrame({"time": time, **{f"s{k}": x for k, x in enumerate(values.T)}})


def study(i: int, machines: int, rows: int, kind: str) -> Found:
    """One machine under both ways, with and without a fault."""
    x = machine(i, rows, kind)
    train = int(TRAIN * rows)
    part = Alarming(per_machine(Budget(3, "week"), machines))
    report = ReadReport("machine", "table", rows, CHANNELS, "")
    found: Found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_frame(table(x), report, ReadOptions())
        training = TrainingRows([loaded], train, "")
        detector, _ = fit_detector(VACEConfig(), training, silent)
        for fault, share in FAULTS.items():
            if fault != "none" and i >= int(share * machines):
                continue
            y = x.copy()
            if fault != "none":
                at = begin(i, rows, fault)
                y[at : at + LONG, :FAULTY] += 8 * x[:train, :FAULTY].std(axis=0)
            loaded = load_frame(table(y), report, ReadOptions())
            for way in WAYS:
                used = supported(part, train, loaded.clock.step) if way == "together" else part
                run = detect_with(detector, loaded, training, used)
                found[way, fault] = row_of(f"m{i:05}", run, "ok", part=part)
    return found


def lines(kind: str, found: Sequence[Found], rows: int) -> Iterator[Line]:
    """What each way makes of each fleet."""
    allowed = 3 * (1 - TRAIN) * rows * STEP / WEEK
    for fault in FAULTS:
        for way in WAYS:
            fleet = [one.get((way, fault), one[way, "none"]) for one in found]
            budgets = {"3 a week": allowed}
            if way == "together":
                budgets["1 in 10 machines"] = LOOSE * len(found)
            for words, most in budgets.items():
                kept = fleet
                if way == "together":
                    kept, _ = kept_to_budget(
                        [replace(row, allowed=most / len(fleet)) for row in fleet]
                    )
                yield {
                    "fleet": kind,
                    "fault": fault,
                    "judged": way,
                    "budget": words,
                    "machines": len(found),
                    "rows": rows,
                    "channels": CHANNELS,
                    "allowed": round(most, 2),
                    **_counts(kept, rows, fault),
                }


def _counts(fleet: Sequence[MachineRow], rows: int, fault: str) -> Line:
    faulty = int(FAULTS[fault] * len(fleet))
    normal = [
        replace(row, events=_others(i, row, rows, fault) if i < faulty else row.events)
        for i, row in enumerate(fleet)
    ]
    incidents = find_incidents(fleet)
    return {
        "false_alarms": sum(len(row.anomalies) for row in normal),
        "false_incidents": len(find_incidents(normal)),
        "machines_with_a_fault": faulty,
        "faults_found": sum(len(fleet[i].events) > len(normal[i].events) for i in range(faulty)),
        "incidents": len(incidents),
        "largest_incident": max((len(one.machines) for one in incidents), default=0),
    }


def _others(i: int, row: MachineRow, rows: int, fault: str) -> tuple[dict[str, object], ...]:
    """The events of a machine that do not overlap its fault."""
    at = begin(i, rows, fault)
    return tuple(
        event for event in row.anomalies if event["start"] >= at + LONG or event["end"] <= at
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS[:3])
    parser.add_argument("--name", default="fleet-budget.csv", help="of the file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    every: list[Line] = []
    with get_context("spawn").Pool(given.jobs) as pool:
        for kind in given.kinds:
            one = partial(study, machines=given.machines, rows=given.rows, kind=kind)
            found = pool.map(one, range(given.machines), chunksize=5)
            for line in lines(kind, found, given.rows):
                print(line, flush=True)
                every.append(line)
            if not given.dry:
                write(every, RESULTS / given.name, seed=SEED)


if __name__ == "__main__":
    main()
