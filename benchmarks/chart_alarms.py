"""Alarms of plain control charts: the rows that must stand beside the product's.

    python benchmarks/chart_alarms.py                       # a few minutes
    python benchmarks/chart_alarms.py --families MSL SMAP   # of these series alone
    python benchmarks/chart_alarms.py --vace                # the product too, by the same rules

Each chart is fitted on the training rows. Its limit is its highest value on training rows that were
held out (three contiguous folds), so nothing is chosen; rows above the limit with at most 48 rows
between them are one alarm. Missing values are filled with the last one before, first rows with the
training mean. Writes chart-alarms.csv, by family of the labelled series, and chart-plants.csv, by
kind of fault of the random plants (`plants.py` beside the data, left out where it is not there).
The rules that alarms are judged by are those of `judging.py`.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from judging import RATE, Judged, common, judge, overlap, proper_alarms
from numpy.typing import NDArray
from record import DATA, RESULTS, Line, write
from scipy.signal import lfilter

from alarms import CORE, series
from vace_ad import VACE
from vace_ad.demo import simulate
from vace_ad.errors import VaceWarning
from vace_study.baselines.cells import Cells
from vace_study.baselines.charts import CUSUM, EWMA, TrainedPCA
from vace_study.baselines.limits import merged

Array = NDArray[np.float64]
WEIGHT = 0.2  # of the newest row in a moving average, as in vace_study's EWMA chart
FOLDS = 3
SUSPECTS = 3
NEAR = 12  # rows by which an alarm may miss the fault of a plant
ONSET = 6  # rows by which its start may be off


class Alarm(NamedTuple):
    """Rows [start, end) of an alarm, and channels by how much they had to do with it."""

    start: int
    end: int
    suspects: list[int]


Statistic = Callable[[Array], Array]  # rows (n, C) to what each channel charts (n, C)
Fit = Callable[[Array], Statistic]
Detect = Callable[[Array, Array], list[Alarm]]  # training rows, test rows


def smoothed(values: Array) -> Array:
    """Exponentially weighted means of each column, from 0 on."""
    return np.asarray(lfilter([WEIGHT], [1.0, WEIGHT - 1.0], values, axis=0))


def of_pca(statistic: Any) -> Fit:
    """What each channel adds to the moving average of T² or Q."""

    def fit(rows: Array) -> Statistic:
        chart = TrainedPCA(statistic).fit(rows)
        return lambda x: smoothed(chart.contributions(x))

    return fit


def chart(fit: Fit, whole: Callable[[Array], Array]) -> Detect:
    """Alarms of a chart whose value at a row is `whole` of those of its channels."""

    def detect(train: Array, test: Array) -> list[Alarm]:
        edges = np.linspace(0, len(train), FOLDS + 1).astype(int)
        limit = max(
            whole(fit(np.delete(train, slice(a, b), axis=0))(train[a:b])).max()
            for a, b in pairwise(edges.tolist())
        )
        found = fit(train)(test)
        return [
            Alarm(a, b, np.argsort(-found[a:b].mean(axis=0), kind="stable")[:SUSPECTS].tolist())
            for a, b, _ in merged(np.flatnonzero(whole(found) > limit))
        ]

    return detect


def product(train: Array, test: Array) -> list[Alarm]:
    """Alarms of the default detector at its default budget."""
    names = [str(i) for i in range(train.shape[1])]
    detector = VACE(random_state=0).fit(pl.DataFrame(train, schema=names))
    return [
        Alarm(event.start, event.end, [int(name) for name, _ in event.shares])
        for event in detector.detect(pl.DataFrame(test, schema=names)).anomalies
    ]


def _sum(values: Array) -> Array:
    return np.asarray(values.sum(axis=1))


def _max(values: Array) -> Array:
    return np.asarray(values.max(axis=1))


CHARTS: dict[str, Detect] = {
    "ewma of t2": chart(of_pca("t2"), _sum),
    "ewma of q": chart(of_pca("q"), _sum),
    "ewma": chart(lambda rows: EWMA().fit(rows).contributions, _max),
    "cusum": chart(lambda rows: CUSUM().fit(rows).contributions, _max),
    "ewma of cells": chart(lambda rows: Cells(WEIGHT).fit(rows).contributions, _max),
}


def filled(table: pl.DataFrame, train: int) -> Array:
    """Values without a gap: the last one before, the training mean where none came before."""
    numbers = table.cast(pl.Float64).fill_nan(None).fill_null(strategy="forward").to_numpy().copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a channel without any training value
        means = np.nan_to_num(np.nanmean(numbers[:train], axis=0))
    return np.where(np.isnan(numbers), means, numbers)


def on_series(
    methods: dict[str, Detect], data: Path, families: list[str]
) -> dict[str, dict[str, Judged]]:
    """Counts by method and family."""
    counted: dict[str, dict[str, Judged]] = {name: {} for name in methods}
    for name, family, table, train in series(data, families):
        labels = table["Label"].to_numpy()[train:].astype(int)
        if not labels.any():
            continue
        values = filled(table.drop("Label"), train)
        for method, detect in methods.items():
            found = [alarm[:2] for alarm in detect(values[:train], values[train:])]
            one, mine = judge(found, labels), counted[method]
            mine[family] = mine[family] + one if family in mine else one
        print(name, flush=True)
    return counted


def family_lines(counted: dict[str, dict[str, Judged]]) -> Iterator[Line]:
    """A line a method and family, the six families of the benchmark's short series, and all."""
    for method, by_family in counted.items():
        core = [by_family[family] for family in CORE if family in by_family]
        groups = dict(by_family)
        if core:
            groups["the six families"] = reduce(add, core)
        if by_family:
            groups["all"] = reduce(add, by_family.values())
        for family, found in groups.items():
            yield {"method": method, "family": family, **found.line()}


def made_plants(path: Path, seeds: range) -> Iterator[tuple[str, Any, Any]]:
    """Kind, plant and its twin without faults; of every fourth seed the demo's plant too."""
    spec = importlib.util.spec_from_file_location("plants", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path} cannot be loaded as a Python module")
    plants = importlib.util.module_from_spec(spec)
    sys.modules["plants"] = plants  # its dataclasses look their own module up
    spec.loader.exec_module(plants)
    for seed in seeds:
        yield "plant", plants.make(seed), plants.make(seed, faults=False)
        if seed % 4 == 0:
            yield "demo", _demo(seed, plants), None


def _demo(seed: int, plants: Any) -> Any:
    demo = simulate(seed=seed)
    faults = [
        plants.Fault(f.kind, demo.names.index(f.sensor), f.start, f.end, 0.0, ())
        for f in demo.faults
    ]
    return plants.Plant(demo.values, list(demo.names), demo.train_rows, faults, {})


class Told(NamedTuple):
    """What was said of one fault."""

    found: bool
    overlap: float
    onset: int | None
    first: bool
    three: bool


def on_plant(plant: Any, detect: Detect) -> tuple[list[tuple[str, Told]], int, int, int]:
    """What was said of each fault by its kind; false alarms, normal rows in alarms, normal rows."""
    train, n_rows = plant.train_rows, len(plant.values) - plant.train_rows
    alarms = detect(plant.values[:train], plant.values[train:])
    faults = [(f.start - train, f.end - train) for f in plant.faults]
    proper, inside, normal = proper_alarms([alarm[:2] for alarm in alarms], faults, n_rows)
    told = []
    for fault, (start, end) in zip(plant.faults, faults, strict=True):
        mine = [a for a in alarms if a[:2] in proper and a[0] < end + NEAR and a[1] > start - NEAR]
        if mine:
            best = max(mine, key=lambda alarm: common(alarm[:2], (start, end)))
            who, onset = best.suspects, best.start - start
            both = overlap(best[:2], (start, end))
            first, three = fault.channel in who[:1], fault.channel in who[:3]
            told.append((fault.kind, Told(True, both, onset, first, three)))
        else:
            told.append((fault.kind, Told(False, 0.0, None, False, False)))
    return told, len(alarms) - len(proper), inside, normal


def plant_lines(methods: dict[str, Detect], path: Path, seeds: range) -> Iterator[Line]:
    """A line a method and kind of fault; that of all has the false alarms, the demo's included."""
    told: dict[str, dict[str, list[Told]]] = {name: defaultdict(list) for name in methods}
    counts = {name: np.zeros(5, int) for name in methods}  # false, inside, normal, rows, twins
    for kind, plant, twin in made_plants(path, seeds):
        for method, detect in methods.items():
            faults, *numbers = on_plant(plant, detect)
            clean = 0 if twin is None else on_plant(twin, detect)[1]
            counts[method] += [*numbers, len(plant.values) - plant.train_rows, clean]
            for fault, said in faults:
                told[method][kind if kind == "demo" else fault].append(said)
                if kind != "demo":
                    told[method]["all"].append(said)
        print(kind, len(plant.values), flush=True)
    for method, by_kind in told.items():
        false, inside, normal, rows, clean = counts[method].tolist()
        alarms = {
            "false_alarms": false, "allowed": f"{RATE * rows:.1f}",
            "normal_rows_in_alarms": f"{inside / normal:.4f}", "clean_twins": clean,
        }  # fmt: skip
        for kind, said in sorted(by_kind.items()):
            line = {"method": method, "fault": kind, **_fault_line(said)}
            yield line | alarms if kind == "all" else line


def _fault_line(said: list[Told]) -> Line:
    onsets = [one.onset for one in said if one.onset is not None]
    shares = {
        "found": [one.found for one in said],
        "overlap": [one.overlap for one in said],
        "onset_within_6": [one.onset is not None and abs(one.onset) <= ONSET for one in said],
        "first_suspect": [one.first for one in said],
        "first_three": [one.three for one in said],
    }
    line: Line = {"faults": len(said)} | {k: f"{np.mean(v):.3f}" for k, v in shares.items()}
    return line | {"onset_median": f"{np.median(onsets):+.0f}" if onsets else ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--plants", type=Path, help="plants.py; beside the data if not given")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files")
    parser.add_argument("--families", nargs="*", default=[])
    parser.add_argument("--seeds", default="100-123", help="of the plants, first-last; '' for none")
    parser.add_argument("--charts", nargs="*", choices=CHARTS, default=list(CHARTS))
    parser.add_argument("--vace", action="store_true", help="judge the product too")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    methods = {name: CHARTS[name] for name in chosen.charts}
    methods |= {"vace": product} if chosen.vace else {}
    lines = list(family_lines(on_series(methods, chosen.data, chosen.families)))
    write(lines, chosen.out / "chart-alarms.csv")
    path = chosen.plants or chosen.data.parent / "plants.py"
    if chosen.seeds and path.is_file():
        first, last = map(int, chosen.seeds.split("-"))
        made = list(plant_lines(methods, path, range(first, last + 1)))
        write(made, chosen.out / "chart-plants.csv")
        lines += made
    elif chosen.seeds:
        print(f"{path} is not there: no plants were judged (--plants says where they are made)")
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
