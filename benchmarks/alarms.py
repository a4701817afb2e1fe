"""Alarms and blame on labelled series: what a person would have been told, and how truly.

    python benchmarks/alarms.py                       # half an hour on 2 cores
    python benchmarks/alarms.py --families TEP ALFA   # minutes

A labelled stretch counts as found if an event lies within 48 rows of it; an event near no labelled
stretch is a false alarm; rows more than 48 rows from any label are normal. Default budget, one
false alarm in 10,000 rows. The delay is that of a live stream at the same budget: rows from the
start of a labelled stretch to the first alarm near it. Blame counts how often one of the first 1,
3 or 5 channels named is truly at fault, beside a plain ranking by distance from the 60 rows before,
in training deviations.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import DATA, RESULTS, Line, write

from vace_ad import VACE
from vace_ad.errors import VaceWarning
from vace_ad.metrics import Operating, blame_hits
from vace_ad.metrics.backtest import blame, operate, read_causes

MOST_ROWS = 40_000  # test rows of a series
SEED = 0
CORE = ("SMAP", "SMD", "MSL", "GECCO", "Daphnet", "Genesis")


def series(folder: Path, families: list[str]) -> Iterator[tuple[str, str, pl.DataFrame, int]]:
    """Name, family, table with its label, and training rows of each labelled series."""
    for path in sorted([*folder.glob("TSB-AD-M/*.parquet"), *folder.glob("practice/*.parquet")]):
        family = path.name.split("_")[1]
        train = int(path.name.split("_tr_")[1].split("_")[0])
        if not families or family in families:
            yield path.name, family, pl.read_parquet(path)[: train + MOST_ROWS], train


def plain_ranking(
    table: pl.DataFrame, train: int, events: list[dict[str, Any]]
) -> list[tuple[bool, ...]]:
    """Hits of channels ranked by distance from the 60 rows before, for each event."""
    names, values = table.columns, table.to_numpy().astype(float)
    deviation = values[:train].std(axis=0) + 1e-9
    hits = []
    for event in events:
        a, b = event["start"], event["end"]
        true = {c if isinstance(c, int) else names.index(c) for c in event.get("channels", [])}
        if a < train or b > len(values) or not true:
            continue
        middle = np.median(values[max(a - 60, 0) : a], axis=0)
        ranked = np.argsort(-np.abs(values[a:b] - middle).mean(axis=0) / deviation)
        hits.append(blame_hits(ranked.tolist(), true))
    return hits


def summary(family: str, counted: Operating) -> Line:
    """The line of a family."""
    found = counted.summary()
    line: Line = {"family": family, "series": counted.series, "events": counted.events}
    line |= {"found": counted.found, "false_alarms": counted.false_alarms}
    line |= {"allowed": f"{counted.allowed:.1f}"}
    line |= {"normal_rows_in_events": f"{found['normal_rows_in_events']:.4f}"}
    if counted.onsets:
        quartiles = (found[f"length_{which}"] for which in ("low", "median", "high"))
        line |= {"onset_median": f"{found['onset_median']:+.0f}"}
        line |= {"onset_early_share": f"{found['onset_early_share']:.2f}"}
        line |= {"length_quartiles": " ".join(f"{length:.2f}" for length in quartiles)}
    line |= {"live_found": len(counted.delays)}
    if counted.delays:
        line |= {"delay_median": f"{found['delay_median']:.0f}"}
        line |= {"delay_worst": f"{found['delay_worst']:.0f}"}
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files")
    parser.add_argument("--families", nargs="*", default=[])
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    causes = read_causes(chosen.data / "rootcause")
    counted: dict[str, Operating] = {}
    hits: dict[str, list[tuple[bool, ...]]] = {}
    for name, family, whole, train in series(chosen.data, chosen.families):
        table, label = whole.drop("Label"), whole["Label"].to_numpy()[train:].astype(int)
        if label.sum() == 0:
            continue
        detector = VACE(random_state=SEED).fit(table[:train])
        if family != "RCD":  # normal and faulty recordings lie days apart: good for blame only
            one = operate(detector, table[train:], label)
            counted[family] = counted[family] + one if family in counted else one
        if name in causes:
            ours = blame(detector, table[train:], causes[name], first=train)
            plain = plain_ranking(table, train, causes[name])
            both = (mine + other for mine, other in zip(ours, plain, strict=True))
            hits.setdefault(family, []).extend(both)
        print(name, flush=True)
    core = [counted[family] for family in CORE if family in counted]
    groups = {**counted, **({"the six families": reduce(add, core)} if core else {})}
    lines = [summary(family, rows) for family, rows in groups.items()]
    write(lines, chosen.out / "alarms.csv", seed=SEED)
    columns = [f"{who}_{k}" for who in ("ours", "plain") for k in (1, 3, 5)]
    told = [
        {"family": family, "events": len(rows)}
        | {c: f"{m:.3f}" for c, m in zip(columns, np.mean(rows, axis=0), strict=True)}
        for family, rows in hits.items()
        if rows
    ]
    if told:
        write(told, chosen.out / "blame.csv", seed=SEED)
    for line in [*lines, *told]:
        print(line)


if __name__ == "__main__":
    main()
