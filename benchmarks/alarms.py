"""Alarms and blame on labelled series: what a person would have been told, and how truly.

    python benchmarks/alarms.py                       # half an hour on 2 cores
    python benchmarks/alarms.py --families TEP ALFA   # minutes

A labelled stretch counts as found if an event lies within 48 rows of it; an event near no labelled
stretch is a false alarm; rows more than 48 rows from any label are normal. Default budget, one
false alarm in 10,000 rows. Blame counts how often one of the first 1, 3 or 5 channels named is
truly at fault, beside a plain ranking by distance from the 60 rows before, in training deviations.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import DATA, RESULTS, Line, write

from vace_ad import VACE
from vace_ad.errors import VaceWarning
from vace_ad.frames.segments import run_edges

TOLERANCE = 48  # rows by which an event may miss a labelled stretch
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


def near(event: tuple[int, int], stretch: tuple[int, int]) -> bool:
    return event[0] < stretch[1] + TOLERANCE and event[1] > stretch[0] - TOLERANCE


def alarms(detector: VACE, table: pl.DataFrame, label: np.ndarray) -> dict[str, Any]:
    """The counts of one series."""
    events = [(event.start, event.end) for event in detector.detect(table).anomalies]
    true = [(a, b) for a, b in run_edges(label == 1).tolist()]
    normal, inside = np.ones(len(label), bool), np.zeros(len(label), bool)
    for a, b in true:
        normal[max(0, a - TOLERANCE) : b + TOLERANCE] = False
    for a, b in events:
        inside[a:b] = True
    matched = [
        (mine[0], stretch)
        for stretch in true
        if len(mine := [event for event in events if near(event, stretch)]) == 1
        and sum(near(mine[0], other) for other in true) == 1
    ]
    return {
        "events": len(true),
        "found": sum(any(near(event, stretch) for event in events) for stretch in true),
        "false": sum(not any(near(event, stretch) for stretch in true) for event in events),
        "allowed": len(label) * 1e-4,
        "normal": int(normal.sum()),
        "inside": int((normal & inside).sum()),
        "onsets": [event[0] - stretch[0] for event, stretch in matched],
        "lengths": [
            (event[1] - event[0]) / (stretch[1] - stretch[0]) for event, stretch in matched
        ],
    }


def blame(
    detector: VACE, table: pl.DataFrame, train: int, events: list[dict[str, Any]]
) -> list[list[bool]]:
    """Hits at 1, 3, 5 of ours and of the plain ranking, for each event."""
    names, values = table.columns, table.to_numpy().astype(float)
    deviation = values[:train].std(axis=0) + 1e-9
    hits = []
    for event in events:
        a, b = event["start"], event["end"]
        true = {c if isinstance(c, int) else names.index(c) for c in event.get("channels", [])}
        if a < train or b > len(values) or not true:
            continue
        middle = np.median(values[max(a - 60, 0) : a], axis=0)
        plain = np.argsort(-np.abs(values[a:b] - middle).mean(axis=0) / deviation)
        told = detector.explain(table[train:], a - train, b - train).top(5)
        ours = [names.index(name) for name, _ in told]
        hits.append(
            [bool(set(found[:k]) & true) for found in (ours, plain.tolist()) for k in (1, 3, 5)]
        )
    return hits


def summary(family: str, rows: list[dict[str, Any]]) -> Line:
    """The line of a family."""
    total = {k: sum(row[k] for row in rows) for k in rows[0] if k not in ("onsets", "lengths")}
    onsets = np.array([onset for row in rows for onset in row["onsets"]])
    lengths = np.array([length for row in rows for length in row["lengths"]])
    line: Line = {"family": family, "series": len(rows), "events": total["events"]}
    line |= {"found": total["found"], "false_alarms": total["false"]}
    line |= {"allowed": f"{total['allowed']:.1f}"}
    line |= {"normal_rows_in_events": f"{total['inside'] / max(total['normal'], 1):.4f}"}
    if len(onsets):
        low, middle, high = np.quantile(lengths, [0.25, 0.5, 0.75])
        line |= {"onset_median": f"{np.median(onsets):+.0f}"}
        line |= {"onset_early_share": f"{np.mean(onsets < -8):.2f}"}
        line |= {"length_quartiles": f"{low:.2f} {middle:.2f} {high:.2f}"}
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files")
    parser.add_argument("--families", nargs="*", default=[])
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    causes: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((chosen.data / "rootcause").glob("*.json")):
        causes |= json.loads(path.read_text())
    counted: dict[str, list[dict[str, Any]]] = {}
    hits: dict[str, list[list[bool]]] = {}
    for name, family, whole, train in series(chosen.data, chosen.families):
        table, label = whole.drop("Label"), whole["Label"].to_numpy()[train:].astype(int)
        if label.sum() == 0:
            continue
        detector = VACE(random_state=SEED).fit(table[:train])
        if family != "RCD":  # normal and faulty recordings lie days apart: good for blame only
            counted.setdefault(family, []).append(alarms(detector, table[train:], label))
        if name in causes:
            hits.setdefault(family, []).extend(blame(detector, table, train, causes[name]))
        print(name, flush=True)
    core = [row for family in CORE for row in counted.get(family, [])]
    groups = {**counted, **({"the six families": core} if core else {})}
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
