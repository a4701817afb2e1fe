"""Learning on: a fit of half the training rows that is updated with the other half, and a full fit.

    python benchmarks/update.py                    # half an hour on 2 cores
    python benchmarks/update.py --families SMD     # minutes

Accuracy is VUS-PR of the rows after training; events are counted on the first half of the training
rows, which an update must not forget. Seconds are those of `fit` and of `update` alone, after one
of each that is not counted.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from record import DATA, RESULTS, Line, write

from vace_ad import VACE
from vace_ad.errors import VaceError, VaceWarning
from vace_ad.metrics.vus import vus

MOST_ROWS = 20_000  # test rows of a series
SEED = 0
FAMILIES = ["SMAP", "SMD", "MSL", "GECCO", "Genesis", "Daphnet"]


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def one(path: Path) -> Line:
    train = int(path.name.split("_tr_")[1].split("_")[0])
    table = pl.read_parquet(path)
    labels = table["Label"].to_numpy()[train : train + MOST_ROWS]
    rows = table.drop("Label").to_numpy().astype(np.float64)
    old, new, test = rows[: train // 2], rows[train // 2 : train], rows[train : train + MOST_ROWS]
    full, half, updated = (VACE(random_state=SEED) for _ in range(3))
    line: Line = {"series": path.name.split("_tr_")[0], "train_rows": train}
    line["fit_seconds"] = round(seconds(lambda: full.fit(rows[:train])), 3)
    half.fit(old)
    updated.fit(old)
    line["update_seconds"] = round(seconds(lambda: updated.update(new)), 3)
    for name, detector in (("full", full), ("half", half), ("updated", updated)):
        scores = detector.score(test)
        known = np.isfinite(scores)
        if 0 < labels[known].sum() < known.sum():
            line[f"vus_pr_{name}"] = round(float(vus(labels[known], scores[known]).vus_pr), 4)
        line[f"old_events_{name}"] = len(detector.detect(old).anomalies)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    parser.add_argument("--out", type=Path, default=RESULTS / "update.csv")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    rng = np.random.default_rng(0)
    warm = np.sin(np.arange(900)[:, None] / [5, 7]) + 0.1 * rng.normal(size=(900, 2))
    VACE().fit(warm[:600]).update(warm[600:])
    lines: list[Line] = []
    for path in sorted((DATA / "TSB-AD-M").glob("*.parquet")):
        if path.name.split("_")[1] in chosen.families:
            try:
                lines.append(one(path))
            except VaceError as error:  # too short a half, for one
                lines.append({"series": path.name.split("_tr_")[0], "error": str(error)[:80]})
            print(lines[-1], flush=True)
    write(lines, chosen.out, seed=SEED)


if __name__ == "__main__":
    main()
