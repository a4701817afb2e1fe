"""Flatlines: how many rows channels keep one value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def still_lengths(rows: Array) -> Array:
    """How many rows in a row have a cell's value, (n, n_channels); 1 where it is missing."""
    at = np.arange(len(rows))[:, None]
    moved = np.ones(rows.shape, dtype=bool)
    moved[1:] = ~(rows[1:] == rows[:-1])
    first = np.maximum.accumulate(np.where(moved, at, 0), axis=0)
    ends = np.ones(rows.shape, dtype=bool)
    ends[:-1] = moved[1:]
    last = np.minimum.accumulate(np.where(ends, at, len(rows))[::-1], axis=0)[::-1]
    return np.asarray(last - first + 1.0)


def longest_still(rows: Array) -> Array:
    """The most rows in a row with one value, (n_channels,); 1 where there are no rows."""
    return np.asarray(still_lengths(rows).max(axis=0, initial=1.0))
