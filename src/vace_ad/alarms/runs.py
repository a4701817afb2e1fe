"""Runs of rows above a threshold: joined, with a minimum length and a cooldown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError


@dataclass(frozen=True)
class Rules:
    """What makes one event.

    Attributes
    ----------
    join
        Events that are at most this many rows apart are merged.
    min_length
        Events with fewer rows are dropped.
    cooldown
        Events that begin within this many rows after the end of another are dropped.
    """

    join: int = 0
    min_length: int = 1
    cooldown: int = 0

    def __post_init__(self) -> None:
        for name, least in (("join", 0), ("min_length", 1), ("cooldown", 0)):
            value = getattr(self, name)
            if value < least:
                raise ConfigError(f"{name}={value!r}: must be at least {least} rows")


def runs_above(scores: NDArray[np.float64], threshold: float, rules: Rules) -> NDArray[np.intp]:
    """The half-open row ranges [start, end) of events, shape (n_events, 2).

    NaN is never above. The rules apply in the order they are listed in.
    """
    above = np.flatnonzero(scores > threshold)
    if len(above) == 0:
        return np.empty((0, 2), dtype=np.intp)
    breaks = np.flatnonzero(np.diff(above) > rules.join + 1)
    starts = above[np.concatenate([[0], breaks + 1])]
    ends = above[np.concatenate([breaks, [len(above) - 1]])] + 1
    runs: NDArray[np.intp] = np.stack([starts, ends], axis=1)
    runs = runs[runs[:, 1] - runs[:, 0] >= rules.min_length]
    if rules.cooldown == 0:
        return runs
    kept, quiet_until = [], -1
    for start, end in runs.tolist():
        if start >= quiet_until:
            kept.append((start, end))
            quiet_until = end + rules.cooldown
    return np.array(kept, dtype=np.intp).reshape(-1, 2)
