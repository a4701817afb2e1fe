"""The median of a series at the same phase of earlier periods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PERIODS = 3  # of the past over which the median of a phase is taken


def same_phase(past: Array, rows: NDArray[np.intp], period: int) -> Array:
    """The median of the same phase in up to three whole periods of the past, (n, n_channels).

    `rows` are numbered from the first past row; those in the past look before themselves.
    """
    latest = rows - period * np.maximum(-(-(rows - len(past) + 1) // period), 1)
    at = latest - period * np.arange(PERIODS)[:, None]  # (PERIODS, n)
    at = np.where(at >= 0, at, np.maximum(latest, latest % period))
    return np.asarray(np.median(past[at], axis=0))
