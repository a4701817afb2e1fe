"""First suspects and onsets of four faults that are hard to date, each in one of five channels.

    python benchmarks/onsets.py                 # half a minute of one core
    python benchmarks/onsets.py --seeds 1

A variance that falls to a quarter, a correlation that breaks, a drift of four deviations over 1,000
rows, and a level off by three, on noise with and without memory. Writes onsets.csv: how many faults
an alarm found, how often the faulty channel was the first suspect, how many rows the dated start
was late (early is negative), and how many rows after the fault the alarm could be known.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from record import RESULTS, Line, write
from scipy.signal import lfilter

from vace_ad import VACE
from vace_ad.errors import VaceWarning

TRAIN, TEST, CHANNELS, SEEDS = 3_000, 4_000, 5, 4
ONSET, RAMP = 2_000, 1_000  # in the test rows; a fault lasts to their end
COUPLING = 0.8  # share of a channel's deviation that comes from what all have in common
BUDGET = "1 in 10,000 rows"
MEMORY = {"white": 0.0, "autocorrelated": 0.9}  # from one row to the next
Array = NDArray[np.float64]


def noise(n_channels: int, memory: float, rng: np.random.Generator) -> Array:
    """Rows (TRAIN + TEST, n_channels) with deviation one."""
    steps = rng.normal(size=(TRAIN + TEST + 200, n_channels)) * (1 - memory**2) ** 0.5
    return np.asarray(lfilter([1.0], [1.0, -memory], steps, axis=0))[200:]


def quieter(x: Array, other: Array) -> None:
    x *= 0.5


def uncoupled(x: Array, other: Array) -> None:
    x[:] = other


def drift(x: Array, other: Array) -> None:
    x += 4 * np.minimum(np.arange(len(x)) / RAMP, 1)


def level(x: Array, other: Array) -> None:
    x += 3


# Each changes the rows of a channel from the onset on, in place; `other` has the same distribution.
FAULTS: dict[str, Callable[[Array, Array], None]] = {
    "variance falls to a quarter": quieter,
    "correlation breaks": uncoupled,
    "drift over 1,000 rows": drift,
    "level off by three deviations": level,
}


def trial(fault: str, memory: float, seed: int) -> tuple[bool, int, int] | None:
    """Whether the first suspect is right, rows to the dated start and to the alarm; None if missed.

    The alarm is the first that ends after the onset.
    """
    rng = np.random.default_rng(seed)
    own, common, other = (noise(n, memory, rng) for n in (CHANNELS, 1, 1))
    rows = COUPLING * common + (1 - COUPLING**2) ** 0.5 * own  # (TRAIN + TEST, CHANNELS)
    faulty = int(rng.integers(CHANNELS))
    FAULTS[fault](rows[TRAIN + ONSET :, faulty], other[TRAIN + ONSET :, 0])
    detector = VACE(random_state=seed).fit(rows[:TRAIN])
    events = detector.detect(rows[TRAIN:], budget=BUDGET).anomalies
    event = next((one for one in events if one.end > ONSET), None)
    if event is None or event.alarm is None:
        return None
    right = event.shares[0][0] == detector.channels_[faulty]
    return right, event.start - ONSET, event.alarm - ONSET


def study(fault: str, kind: str, seeds: int) -> Line:
    """The line of a fault on one kind of noise."""
    found = [one for seed in range(seeds) if (one := trial(fault, MEMORY[kind], seed)) is not None]
    right, starts, alarms = zip(*found, strict=True) if found else ((), (), ())
    return {
        "fault": fault,
        "noise": kind,
        "faults": seeds,
        "found": len(found),
        "first_suspect_right": sum(right),
        "start_late": f"{np.median(starts):+.0f}" if found else "",
        "start_late_by_seed": " ".join(f"{one:+d}" for one in starts),
        "alarm_after": f"{np.median(alarms):.0f}" if found else "",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=list(FAULTS))
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    lines = []
    for fault in chosen.faults:
        for kind in MEMORY:
            lines.append(study(fault, kind, chosen.seeds))
            print(lines[-1], flush=True)
    write(lines, chosen.out / "onsets.csv", budget=BUDGET, train_rows=TRAIN, test_rows=TEST)


if __name__ == "__main__":
    main()
