"""Which signal sees which fault, on made series.

    python benchmarks/faults.py         # a minute

Ten channels follow three hidden ones; one kind of fault at a time is put into single channels of
the test half. Writes faults.csv: VUS-PR of the default, of shape alone (what the paper's
normalisation can see), and of the default without each signal, mean of the seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from record import RESULTS, Line, write
from scipy.signal import lfilter

from vace_ad import VACE
from vace_ad.metrics import vus

ROWS, TRAIN, CHANNELS = 12_000, 6_000, 10
EVERY = 480  # rows from one fault to the next
WINDOW = 100  # of VUS
SEEDS = 5
Array = NDArray[np.float64]
# Each puts its fault into a channel from a row on, in place, and tells how many rows it takes.
Fault = Callable[[Array, int, np.random.Generator], int]


def curves(seed: int) -> Array:
    """Normal operation: channels with deviation one that move together."""
    rng = np.random.default_rng(seed)
    wander = lfilter([1], [1, -0.98], rng.normal(size=(ROWS, 3)), axis=0)
    rhythm = np.sin(np.arange(ROWS)[:, None] / [9, 23, 57])
    mixed = (wander / wander.std(axis=0) + rhythm) @ rng.normal(size=(3, CHANNELS))
    return np.asarray(mixed / mixed.std(axis=0) + 0.1 * rng.normal(size=mixed.shape))


def spike(x: Array, a: int, rng: np.random.Generator) -> int:
    x[a] += 6
    return 1


def level(x: Array, a: int, rng: np.random.Generator) -> int:
    x[a : a + 150] += 4
    return 150


def swing(x: Array, a: int, rng: np.random.Generator) -> int:
    part = x[a : a + 150]
    part += 2 * (part - part.mean())
    return 150


def noise(x: Array, a: int, rng: np.random.Generator) -> int:
    x[a : a + 150] += 0.5 * rng.normal(size=150)
    return 150


def frozen(x: Array, a: int, rng: np.random.Generator) -> int:
    x[a : a + 150] = x[a]
    return 150


def rhythm(x: Array, a: int, rng: np.random.Generator) -> int:
    faster = x[a : a + 300 : 2]
    x[a : a + 150] = faster - faster[0] + x[a]
    return 150


def own_way(x: Array, a: int, rng: np.random.Generator) -> int:
    x[a : a + 150] = x[a - 2000 : a - 1850]
    return 150


FAULTS: dict[str, Fault] = {
    "single bad readings": spike,
    "level off by four deviations": level,
    "swings three times as wide": swing,
    "more noise": noise,
    "frozen": frozen,
    "twice as fast": rhythm,
    "its own way, within its range": own_way,
}


def with_fault(fault: Fault, seed: int) -> tuple[Array, NDArray[np.int8]]:
    """A series with one kind of fault, and its labels."""
    rows, labels = curves(seed), np.zeros(ROWS, np.int8)
    rng = np.random.default_rng(seed)
    for a in range(TRAIN + EVERY // 2, ROWS - EVERY, EVERY):
        length = fault(rows[:, rng.integers(CHANNELS)], a, rng)
        labels[a : a + length] = 1
    return rows, labels


def rules(signals: dict[str, Array]) -> Iterator[tuple[str, Array]]:
    score = sum(signals.values(), np.zeros(1))
    yield "default", score
    for name in signals:
        yield f"without {name}", score - signals[name]


def study(name: str, seeds: int) -> Line:
    """The mean VUS-PR of each rule for one kind of fault."""
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        rows, labels = with_fault(FAULTS[name], seed)
        detector = VACE(random_state=seed).fit(rows[:TRAIN])
        for rule, score in rules(detector.signals(rows[TRAIN:])):
            found.setdefault(rule, []).append(vus(labels[TRAIN:], score, WINDOW).vus_pr)
    return {"fault": name, **{rule: f"{np.mean(values):.3f}" for rule, values in found.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=list(FAULTS))
    chosen = parser.parse_args()
    lines = [study(name, chosen.seeds) for name in chosen.faults]
    for line in lines:
        print(line)
    write(lines, chosen.out / "faults.csv", seeds=chosen.seeds)


if __name__ == "__main__":
    main()
