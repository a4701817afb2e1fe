"""Coarser and coarser views of one series: the lowest and highest value of every 16^k rows.

A screen has a thousand or so columns of pixels. Whatever the zoom, the page draws from the
coarsest level that still has at least one bin a column, so the work of a frame does not grow
with the series, and no spike is ever lost, as it would be by taking every m-th row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FACTOR = 16  # rows of level k + 1 are bins of 16 of level k; costs 2/15 of the series on top
SCREENFUL = 4096  # the coarsest level has at most this many bins
LIMIT = 1e300  # beyond it, differences of two values could overflow


def drawable(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return rows (n,) as numbers that can be drawn: infinite ones become NaN, a hole."""
    wide = np.asarray(rows, dtype=np.float64)
    return np.where(np.isfinite(wide), np.clip(wide, -LIMIT, LIMIT), np.nan)


def coarse_levels(column: NDArray[np.floating]) -> list[NDArray[np.float64]]:
    """Return what lies above the rows (n,) of a series, each level (2, n_bins), finest first.

    The first has the lowest and the highest of every 16 rows, the next of every 256, and so on;
    a bin without a single number is NaN.
    """
    low = high = drawable(column)
    levels = []
    while len(low) > SCREENFUL:
        low, high = _coarser(low, np.fmin), _coarser(high, np.fmax)
        levels.append(np.stack([low, high]))
    return levels


def _coarser(values: NDArray[np.float64], keep: np.ufunc) -> NDArray[np.float64]:
    n_bins = -(-len(values) // FACTOR)
    padded = np.full(n_bins * FACTOR, np.nan)
    padded[: len(values)] = values
    bins: NDArray[np.float64] = keep.reduce(padded.reshape(n_bins, FACTOR), axis=1)
    return bins
