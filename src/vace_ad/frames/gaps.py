"""Missing values: short gaps are interpolated, longer ones cut the series into stretches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Larger magnitudes would overflow when squared, so they count as missing.
LARGEST = 1e100


class Stretch(NamedTuple):
    """Consecutive rows without a missing value."""

    start: int  # row of its table
    values: NDArray[np.float64]  # (n_rows, n_channels)

    @property
    def rows(self) -> slice:
        """Its place in the table."""
        return slice(self.start, self.start + len(self.values))


def stretches(values: NDArray[np.float64], max_gap: int, min_length: int) -> list[Stretch]:
    """The complete stretches of `values` that have at least `min_length` rows.

    Gaps of up to `max_gap` rows in a channel are interpolated linearly first; at an end of the
    table they take the nearest value.
    """
    missing = ~(np.abs(values) <= LARGEST)  # (n_rows, n_channels); NaN compares false
    if not missing.any():
        return [Stretch(0, values)] if len(values) >= min_length else []
    values = np.where(missing, np.nan, values)
    for channel in np.flatnonzero(missing.any(axis=0)):
        interpolate(values[:, channel], missing[:, channel], max_gap)
    edges = run_edges(np.asarray(~np.isnan(values).any(axis=1)))
    return [Stretch(a, values[a:b]) for a, b in edges.tolist() if b - a >= min_length]


def run_edges(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The half-open ranges [start, end) where `mask` is true, shape (n_runs, 2)."""
    padded = np.concatenate([[False], mask, [False]])
    return np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)


def interpolate(column: NDArray[np.float64], missing: NDArray[np.bool_], max_gap: int) -> None:
    """Fill the short gaps of one channel, in place."""
    known = np.flatnonzero(~missing)
    if len(known) == 0:
        return
    edges = run_edges(missing)
    short = np.zeros(len(column), dtype=bool)
    for a, b in edges[edges[:, 1] - edges[:, 0] <= max_gap].tolist():
        short[a:b] = True
    column[short] = np.interp(np.flatnonzero(short), known, column[known])
