"""A machine with two ways of normal operation that no column tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NAMES = ("speed", "flow", "pressure", "current", "temperature")
NOISE = (0.3, 0.6, 0.1, 0.2, 0.3)  # of each channel


class Machine(NamedTuple):
    """Rows, the mode of each, and faults [start, end) of a channel after the training rows."""

    rows: np.ndarray  # (n, 5)
    modes: np.ndarray
    faults: list[tuple[int, int, str]]


def machine(seed: int, n: int = 10_000, train: int = 5_000) -> Machine:
    """In one mode flow rises with the drive, in the other it falls."""
    rng = np.random.default_rng(seed)
    modes, at = np.zeros(n, int), 0
    for i in range(n):
        stay = int(rng.integers(150, 500))
        modes[at : at + stay] = i % 2
        at += stay
    drive, keep, last = np.empty(n), np.exp(-1 / 20), 0.0
    for i, shock in enumerate(rng.normal(size=n)):
        last = keep * last + np.sqrt(1 - keep * keep) * shock
        drive[i] = last
    first = np.column_stack([
        50 + 5 * drive, 100 + 10 * drive, 5 + 0.5 * drive, 10 + 1.5 * drive, 40 + 0 * drive,
    ])  # fmt: skip
    second = np.column_stack([
        80 + 5 * drive, 60 - 5 * drive, 8 + 0.1 * drive, 14 + 3 * drive, 40 + 2 * drive,
    ])  # fmt: skip
    rows = np.where(modes[:, None] == 0, first, second) + rng.normal(0, NOISE, (n, 5))
    faults = []
    starts = np.linspace(train + 300, n - 300, 8).astype(int) + rng.integers(-60, 60, 8)
    for i, start in enumerate(starts.tolist()):
        channel = 1 + i % 4
        rows[start : start + 60, channel] += (6, 8)[i % 2] * NOISE[channel] * (1, -1)[i // 2 % 2]
        faults.append((start, start + 60, NAMES[channel]))
    return Machine(rows, modes, faults)
