"""Budgets of false alarms on clean processes of 49 kinds: what was promised, what came.

    make budgets                                              # a quarter of an hour on one core
    python benchmarks/budgets.py --rows 10000 --minutes 5     # as many series as fit
    python benchmarks/budgets.py --quick --kinds "white noise" "t3"

A detector is fitted on the first rows of each clean series, and all events in the rest are false
alarms. Writes budgets.csv: for each kind the false alarms beside those that the budgets of one in
1,000 and one in 10,000 rows allow, sums over seeds; how many a budget that is kept exceeds once in
1,000 such sums; and the share of rows inside events. All kinds have their first seed before any has
its second, so a run that is cut short has lost seeds, not kinds; each line says how many it has.
`make test` holds four kinds to their budget.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
from processes import KINDS, Array, Kind
from record import RESULTS, Line, write
from scipy.stats import poisson

from vace_ad import VACE
from vace_ad.alarms.budget import Budget
from vace_ad.errors import VaceWarning

TRAIN, TEST, SEEDS = 5_000, 30_000, 3
QUICK = (1_500, 3_000, 1)  # training rows, test rows, seeds
BUDGETS = {"1 in 1,000": 1e-3, "1 in 10,000": 1e-4}  # alarms a row


def series(kind: Kind, n_rows: int, seed: int) -> Array:
    """The rows of a kind, the same for the same seed whatever other kinds are chosen."""
    number = [other.name for other in KINDS].index(kind.name)
    return kind.rows(n_rows, np.random.default_rng([seed, number]))


def count(kind: Kind, train: int, test: int, seed: int) -> dict[str, tuple[int, int]]:
    """False alarms and rows inside events, for each budget."""
    rows = series(kind, train + test, seed)  # (train + test, CHANNELS)
    detector = VACE(random_state=seed).fit(rows[:train])
    found = {}
    for name, rate in BUDGETS.items():
        events = detector.detect(rows[train:], budget=Budget(rate * 10_000, "rows"))
        found[name] = len(events.anomalies), int(events.predictions.sum())
    return found


def summary(kind: Kind, counted: list[dict[str, tuple[int, int]]], test: int) -> list[Line]:
    """The lines of a kind, one a budget; `counted` has an entry for each seed."""
    lines = []
    for name, rate in BUDGETS.items():
        alarms = [each[name][0] for each in counted]
        inside = sum(each[name][1] for each in counted)
        lines.append(line(kind.name, kind.group, name, alarms, rate * test * len(counted)))
        lines[-1]["rows_in_events"] = f"{inside / (test * len(counted)):.5f}"
        lines[-1]["seeds"] = len(counted)
    return lines


def line(name: str, group: str, budget: str, alarms: list[int], allowed: float) -> Line:
    return {
        "kind": name,
        "group": group,
        "budget": budget,
        "false_alarms": sum(alarms),
        "allowed": f"{allowed:.1f}",
        "ratio": f"{sum(alarms) / allowed:.2f}",
        "at_most": int(poisson.isf(0.001, allowed)),
        "by_seed": " ".join(map(str, alarms)),
    }


def sums(lines: Iterable[Line]) -> list[Line]:
    """A line for all kinds of each group, and one for all kinds."""
    lines = list(lines)
    found = []
    for group in [*dict.fromkeys(each["group"] for each in lines), "all"]:
        for budget in BUDGETS:
            mine = [e for e in lines if e["budget"] == budget and group in (e["group"], "all")]
            alarms = [e["false_alarms"] for e in mine]
            total = line("all", group, budget, alarms, sum(float(e["allowed"]) for e in mine))
            ratios = np.array([float(e["ratio"]) for e in mine])
            total["by_seed"] = ""
            total["rows_in_events"] = f"{np.mean([float(e['rows_in_events']) for e in mine]):.5f}"
            total["worst_ratio"] = f"{ratios.max():.2f}"
            total["kinds_over_2"] = f"{int((ratios > 2).sum())} of {len(ratios)}"
            beyond = sum(e["false_alarms"] > e["at_most"] for e in mine)
            total["kinds_beyond"] = f"{beyond} of {len(mine)}"
            found.append(total)
    return found


def show(each: Line) -> None:
    print(
        f"{each['kind'] if each['kind'] != 'all' else each['group']:24} {each['budget']:12}"
        f"{each['false_alarms']:6} of {each['allowed']:>7}  ×{each['ratio']:<7}"
        f"rows inside {float(each['rows_in_events']):7.3%}  {each.get('kinds_over_2', '')}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    names = [kind.name for kind in KINDS]
    parser.add_argument("--kinds", nargs="*", choices=names, default=names, metavar="NAME")
    parser.add_argument("--seeds", type=int, help=f"{SEEDS} unless told, 1 where quick")
    parser.add_argument("--rows", type=int, help=f"test rows of a series, {TEST} unless told")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most")
    parser.add_argument("--quick", action="store_true", help="fewer rows, one seed")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    train, test, seeds = QUICK if chosen.quick else (TRAIN, TEST, SEEDS)
    test, seeds, began = chosen.rows or test, chosen.seeds or seeds, time.monotonic()
    kinds = [kind for kind in KINDS if kind.name in chosen.kinds]
    counted: dict[str, list[dict[str, tuple[int, int]]]] = {kind.name: [] for kind in kinds}
    for seed, kind in product(range(seeds), kinds):
        if time.monotonic() - began > 60 * chosen.minutes:
            break
        counted[kind.name].append(count(kind, train, test, seed))
        for each in summary(kind, counted[kind.name], test):
            show(each)
    done = [kind for kind in kinds if counted[kind.name]]
    lines = [each for kind in done for each in summary(kind, counted[kind.name], test)]
    total = sums(lines)
    print("\ntogether; kinds with more than twice what was allowed in the last column")
    for each in total:
        show(each)
    print(f"{time.monotonic() - began:.0f} seconds, {time.process_time():.0f} of the processor")
    facts = {"train_rows": train, "test_rows": test}
    write([*lines, *total], chosen.out / "budgets.csv", **facts)


if __name__ == "__main__":
    main()
