"""What alarms are worth on a family that had no say in the constants of alarms.

    python benchmarks/alarm_constants.py --minutes 60    # goes on where it stopped
    python benchmarks/alarm_constants.py --minutes 0     # the choice alone, from the rows at hand

Every variant of VARIANTS is tried on a few series of each family, the simulated plants among them,
and its counts are kept in alarm-variants.csv. Then each family is left out once: the variant that
is best on the mean of the others is chosen, and its counts on the family itself are the figure
that may be believed. What counts is `worth`: the share of events found, less half an event for each
false alarm beyond the budget. Writes alarm-constants.csv.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from chart_alarms import made_plants
from judging import RATE, judge
from numpy.typing import NDArray
from record import DATA, RESULTS, Line, write

from alarms import series
from vace_ad import VACE, model
from vace_ad.alarms import alarm_model, alarm_stream, constants, evidence, scan, tracker
from vace_ad.alarms.alarm_model import AlarmModel
from vace_ad.alarms.alarm_stream import AlarmStream
from vace_ad.signals.cell_fit import learn as learn_cells
from vace_ad.signals.ensemble import FitResult, learn

Array = NDArray[np.float64]
MOST_SERIES, MOST_ROWS = 4, 12_000  # of a family; trained and tested rows of a series
MOST_CELLS = 400_000  # of the training rows
PLANTS = range(8)
LONGEST = 1000  # rows, the default of new_normal_after
VARIANTS: dict[str, dict[str, float]] = {
    "default": {},
    "slower baseline": {"BASELINE_HALF_LIFE": 1000},
    "faster baseline": {"BASELINE_HALF_LIFE": 250},
    "higher low price": {"LOW_PRICE": 2.0},
    "lower low price": {"LOW_PRICE": 1.25},
    "lighter prior": {"PRIOR_SHAPE": 0.1},
    "heavier prior": {"PRIOR_SHAPE": 0.6},
    "shorter rest": {"REST": 24},
    "less for one cell": {"MOST_NATS": 20.0},
    "more for one cell": {"MOST_NATS": 45.0},
    "lower score limit": {"SCORE_RATE": 8e-4},
    "higher score limit": {"SCORE_RATE": 3.2e-3},
    "lower score price": {"SCORE_PRICE": 0.18},
    "higher score price": {"SCORE_PRICE": 0.47},
    "never out of date": {"OUTDATED": 1.0},
    "less out of date": {"OUTDATED": 3.0},
    "more out of date": {"OUTDATED": 8.0},
    "no doubt": {"DOUBT": 0.0},
    "less doubt": {"DOUBT": 2.0},
    "more doubt": {"DOUBT": 8.0},
}
ROWS, CHOICE = RESULTS / "alarm-variants.csv", RESULTS / "alarm-constants.csv"
NUMBERS = ("events", "found", "false_alarms", "allowed", "inside_rows", "normal_rows")


class Case(NamedTuple):
    """A labelled series."""

    family: str
    name: str
    train: Array
    test: Array
    labels: NDArray[np.int_]


def cases() -> Iterator[Case]:
    """A few series of each family, and plants."""
    for seed, (kind, plant, _) in enumerate(made_plants(DATA.parent / "plants.py", PLANTS)):
        n = plant.train_rows
        labels = np.asarray(plant.labels[n:], np.int_)
        yield Case("plants", f"{kind} {seed}", plant.values[:n], plant.values[n:], labels)
    count: dict[str, int] = defaultdict(int)
    for name, family, table, n in series(DATA, []):
        labels = table["Label"].to_numpy().astype(int)[n : n + MOST_ROWS]
        small = n <= MOST_ROWS and n * (table.width - 1) <= MOST_CELLS
        if labels.any() and count[family] < MOST_SERIES and small:
            count[family] += 1
            values = np.nan_to_num(table.drop("Label").to_numpy().astype(float))
            yield Case(family, name, values[:n], values[n : n + MOST_ROWS], labels)


@contextmanager
def numbers(changed: dict[str, float]) -> Iterator[None]:
    """Other constants for a while."""
    places = [
        (module, name)
        for name in changed
        for module in (constants, evidence, scan, alarm_model, alarm_stream, tracker)
        if hasattr(module, name)
    ]
    before = [(module, name, getattr(module, name)) for module, name in places]
    prices = scan._PRICES
    for module, name in places:
        setattr(module, name, changed[name])
    scan._PRICES = (scan.LOW_PRICE, scan.LOW_PRICE, *prices[2:])
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        scan._PRICES = prices


def tried(case: Case) -> Iterator[Line]:
    """The counts of each variant on one series: scores and cells are computed once for all."""
    fitted: list[FitResult] = []

    def kept(*args: Any) -> FitResult:
        fitted.append(learn(*args))
        return fitted[-1]

    with patch.object(model, "learn", kept):
        detector = VACE(random_state=0).fit(case.train)
    parts, held = [part.rows for part in fitted[0].parts], fitted[0].held
    watched = detector.model_.watched
    learned = learn_cells(parts, ~watched)
    now = detector.stream().add(case.test).provisional
    for variant, changed in VARIANTS.items():
        with numbers(changed):
            alarms = AlarmStream(AlarmModel.fit(parts, held, watched, learned), RATE, LONGEST)
            notices = alarms.add(case.test, now).notices + alarms.tracker.finish()
        found = judge([one.event.rows for one in notices if one.what == "resolve"], case.labels)
        counts = {name: getattr(found, name) for name in NUMBERS}
        yield {"family": case.family, "series": case.name, "variant": variant, **counts}


def worth(lines: list[Line]) -> float:
    """The share of events found, less half an event for each false alarm beyond the budget."""
    total = {name: sum(float(line[name]) for line in lines) for name in NUMBERS}
    beyond = max(total["false_alarms"] - total["allowed"], 0.0)
    return (total["found"] - beyond / 2) / max(total["events"], 1.0)


def choice(lines: list[Line]) -> Iterator[Line]:
    """For each family: the variant that the others choose, and what it is worth here."""
    by: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        by[line["family"], line["variant"]].append(line)
    families = sorted({family for family, _ in by})
    value = {key: worth(some) for key, some in by.items()}
    for family in families:
        others = [one for one in families if one != family]
        best = max(VARIANTS, key=lambda v: float(np.mean([value[one, v] for one in others])))
        mine = by[family, best]
        counts = {name: round(sum(float(line[name]) for line in mine), 1) for name in NUMBERS}
        yield {
            "family": family,
            "series": len(mine),
            "chosen_without_it": best,
            **counts,
            "worth": round(value[family, best], 3),
            "worth_of_default": round(value[family, "default"], 3),
            "best_here": max(VARIANTS, key=lambda v: value[family, v]),
        }


def read(path: Path) -> list[Line]:
    """Lines of an earlier run."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Try variants for some minutes, then choose."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="time for new series")
    until = time.monotonic() + 60 * parser.parse_args().minutes
    warnings.simplefilter("ignore")
    lines: list[Line] = read(ROWS)
    known = {line["series"] for line in lines}
    for case in cases():
        if time.monotonic() > until:
            break
        if case.name not in known:
            lines += tried(case)
            write(lines, ROWS)
            print(case.family, case.name, flush=True)
    found: list[dict[str, Any]] = list(choice(lines))
    write(found, CHOICE)
    for line in found:
        print(*line.values())


if __name__ == "__main__":
    main()
