"""What faults among the training rows cost, and what `robust` gives back.

    OMP_NUM_THREADS=1 python benchmarks/contamination.py     # ten minutes

Three labelled faults of the test part are copied into the training part of five SMD series. VUS-PR
and alarms of the test part, with clean and with contaminated training, without and with `robust`;
on clean training alone for series where `robust` should change nothing.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from record import DATA, RESULTS, Line, write

from vace_ad import VACE
from vace_ad.errors import VaceWarning
from vace_ad.metrics import operating, sliding_window, vus
from vace_ad.metrics.events import find_events

PLANTED = ("057", "063", "069", "073", "076")
CLEAN = ("001", "003", "005", "064", "066", "067", "077", "144", "145", "173")
MOST_ROWS = 25_000  # test rows of a series
PLACES = (0.2, 0.5, 0.8)  # of the training part, where faults are planted
SEED = 0


def planted(train: np.ndarray, test: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Training rows with three short faults of the test part in them."""
    events = find_events(label == 1)
    short = [
        (start, stop)
        for start, stop in zip(events.starts.tolist(), events.stops.tolist(), strict=True)
        if stop - start <= 0.03 * len(train)
    ]
    chosen = np.random.default_rng(SEED).choice(len(short), min(3, len(short)), replace=False)
    rows = train.copy()
    for (start, stop), place in zip((short[i] for i in chosen), PLACES, strict=False):
        at = int(place * len(train))
        rows[at : at + stop - start] = test[start:stop]
    return rows


def judged(train: np.ndarray, test: np.ndarray, label: np.ndarray, robust: bool) -> Line:
    """VUS-PR and alarms of the test part."""
    detector = VACE(random_state=SEED, robust=robust).fit(train)
    scores = np.nan_to_num(detector.score(test))
    events = [(event.start, event.end) for event in detector.detect(test).anomalies]
    counted = operating(label, events, rate=1e-4)
    return {
        "robust": robust,
        "rows_used": detector.facts_["rows_used"],
        "vus_pr": f"{vus(label, scores, window=sliding_window(test[:, 0])).vus_pr:.3f}",
        "events": counted.events,
        "found": counted.found,
        "false_alarms": counted.false_alarms,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    lines: list[Line] = []
    for number in (*PLANTED, *CLEAN):
        path = next((chosen.data / "TSB-AD-M").glob(f"{number}_*.parquet"))
        n = int(path.name.split("_tr_")[1].split("_")[0])
        table = pl.read_parquet(path)[: n + MOST_ROWS]
        label = table["Label"].to_numpy()[n:].astype(int)
        rows = table.drop("Label").to_numpy().astype(float)
        trainings = {"clean": rows[:n]}
        if number in PLANTED:
            trainings["three faults"] = planted(rows[:n], rows[n:], label)
        for training, train in trainings.items():
            for robust in (False, True):
                line = {"series": path.stem, "training": training}
                lines.append(line | judged(train, rows[n:], label, robust))
                print(lines[-1], flush=True)
        write(lines, chosen.out / "contamination.csv", seed=SEED)


if __name__ == "__main__":
    main()
