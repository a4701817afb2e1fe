"""Composition: s = s̃_p · (1 + w · s̃_d), each signal in a unit of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
TINY = 1e-12  # keeps a signal that never varied from dividing by zero


def training_unit(scores: Scores) -> float:
    """The unit of a signal whose scale is fixed at fit: its 99 % quantile in training."""
    return max(float(np.quantile(scores, 0.99)), TINY)


def normalised(scores: Scores, how: str, unit: float) -> Scores:
    """A signal in units of training, or as a z-score or min–max position over its own set."""
    if how == "training":
        return scores / unit
    if how == "zscore":
        return (scores - np.nanmean(scores)) / max(float(np.nanstd(scores)), TINY)
    low, high = np.nanmin(scores), np.nanmax(scores)
    return np.asarray((scores - low) / max(float(high - low), TINY))


def compose(position: Scores, direction: Scores | None, weight: float) -> Scores:
    """s̃_p · (1 + w · s̃_d), or s̃_p alone where direction does not count."""
    return position if direction is None else position * (1 + weight * direction)
