"""State columns (on/off, modes as text): are they worth a one-hot channel for each value?

    OMP_NUM_THREADS=1 python benchmarks/fleet_states.py
    python benchmarks/fleet_states.py --seeds 1 --dry      # to see that it works

A plant has three modes, and the level of its four sensors follows the mode. Faults: the sensors run
as in another mode than the column says; one sensor is off by one deviation; the mode switches ten
times as often. Scored without the column and with it as one-hot channels. Real series: the tuning
ones of MSL and SMAP, whose commands are such columns already, with and without them. VUS-PR and
AUC-PR. Writes fleet-states.csv.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import polars as pl
from numpy.typing import NDArray
from record import DATA, RESULTS, Line, write

from vace_ad import VACE
from vace_ad.metrics import evaluate

Array = NDArray[np.float64]
ROWS, TRAIN, SENSORS, MODES, LONG = 4000, 2000, 4, 3, 40
FAULTS = ("other mode", "one sensor", "switching")


def modes(rng: np.random.Generator, rows: int, longest: int = 240) -> NDArray[np.intp]:
    """Which mode each row is in, (rows,)."""
    found: list[int] = [0]
    while len(found) < rows:
        other = (found[-1] + rng.integers(1, MODES)) % MODES
        found += [int(other)] * int(rng.integers(longest // 4, longest))
    return np.array(found[:rows], np.intp)


def plant(seed: int, fault: str) -> tuple[Array, NDArray[np.intp], NDArray[np.bool_]]:
    """Sensors (ROWS, SENSORS), what the mode column says, and which rows are faulty."""
    rng = np.random.default_rng([seed, 7])
    said = modes(rng, ROWS)
    real, labels = said.copy(), np.zeros(ROWS, bool)
    level = 2 * rng.normal(size=(MODES, SENSORS))
    off = np.zeros((ROWS, SENSORS))
    for start in range(TRAIN + 100, ROWS - LONG, 200):
        now = slice(start, start + LONG)
        labels[now] = True
        if fault == "other mode":
            real[now] = (said[now] + 1) % MODES
        elif fault == "one sensor":
            off[now, rng.integers(SENSORS)] = 1.0
        else:
            said[now] = real[now] = modes(rng, LONG, 12)
    noise = rng.normal(size=(ROWS, SENSORS))
    for t in range(1, ROWS):
        noise[t] += 0.7 * noise[t - 1]
    return level[real] + 0.3 * noise + off, said, labels


def one_hot(said: NDArray[np.intp]) -> Array:
    """A channel for each mode, (rows, MODES)."""
    return np.eye(MODES)[said]


def quality(values: Array, labels: NDArray[np.bool_], train: int, seed: int) -> dict[str, float]:
    """How well the rows after training are told apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = VACE(random_state=seed).fit(values[:train]).score(values)
    found = evaluate(labels[train:], np.nan_to_num(scores[train:]))
    return {"vus_pr": round(found["VUS-PR"], 3), "auc_pr": round(found["AUC-PR"], 3)}


def synthetic(seeds: int) -> list[Line]:
    lines: list[Line] = []
    for fault in FAULTS:
        for seed in range(seeds):
            values, said, labels = plant(seed, fault)
            both = np.column_stack([values, one_hot(said)])
            for way, table in (("without", values), ("one-hot", both)):
                line: Line = {"series": fault, "seed": seed, "states": way}
                lines.append({**line, **quality(table, labels, TRAIN, seed)})
                print(lines[-1], flush=True)
    return lines


def real() -> list[Line]:
    names = pl.read_csv(DATA / "tsb-ad-m-tuning.csv").to_series().to_list()
    lines: list[Line] = []
    for name in names:
        stem = name.removesuffix(".csv")
        if not any(family in stem for family in ("MSL", "SMAP")):
            continue
        frame = pl.read_parquet(DATA / "TSB-AD-M" / f"{stem}.parquet")
        labels = frame["Label"].to_numpy().astype(bool)
        train = int(stem.split("_tr_")[1].split("_")[0])
        values = frame.drop("Label").cast(pl.Float64).to_numpy()
        binary = np.array([set(np.unique(column)) <= {0.0, 1.0} for column in values.T])
        for way, table in (("without", values[:, ~binary]), ("one-hot", values)):
            line: Line = {"series": stem, "seed": 0, "states": way}
            lines.append({**line, **quality(table, labels, train, 0)})
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    lines = synthetic(given.seeds) + real()
    if not given.dry:
        write(lines, RESULTS / "fleet-states.csv")


if __name__ == "__main__":
    main()
