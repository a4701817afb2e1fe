"""Composition: s = s̃_p · (1 + w · s̃_d), each signal in a unit of its own.

What is returned are two parts that add up to s: that of position alone, and what direction adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
TINY = 1e-12  # keeps a signal that never varied from dividing by zero


def over_the_set(scores: Scores, how: str) -> Scores:
    """A signal as its z-score or min–max position over the scored set."""
    if how == "zscore":
        return np.asarray((scores - scores.mean()) / max(float(scores.std()), TINY))
    low, high = scores.min(), scores.max()
    return np.asarray((scores - low) / max(float(high - low), TINY))


def compose(position: Scores, direction: Scores | None, weight: float) -> tuple[Scores, Scores]:
    """s̃_p, and s̃_p · w · s̃_d."""
    return position, np.zeros_like(position) if direction is None else position * weight * direction


def compose_log(position: Scores, direction: Scores | None, weight: float) -> tuple[Scores, Scores]:
    """log(1 + s̃_p), and what log(1 + s̃_p · (1 + w · s̃_d)) adds to it.

    On a log scale no single encoder, and no single patch, can drown the others.
    """
    alone = np.log1p(position)
    if direction is None:
        return alone, np.zeros_like(alone)
    return alone, np.log1p(position * (1 + weight * direction)) - alone
