"""The time axis as a piecewise linear function with few knots.

A table sampled every minute needs two points, one with three gaps needs eight; only a table of
irregular stamps needs many, and those are thinned beyond a limit (the ends of gaps never are).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_KNOTS = 100_000
GAP_STEPS = 10.0  # a step this many times the median one breaks the curve


@dataclass(frozen=True)
class TimeAxis:
    """Row to position on the axis: milliseconds after the first row, or the row itself."""

    rows: NDArray[np.int64]  # (k,) increasing
    at: NDArray[np.float64]  # (k,) never decreasing
    origin_ms: float | None  # the first row in ms since 1970, None where there is no time
    step: float  # the median distance of two rows
    gap: float  # a distance above this is a gap


def make_clock(time: NDArray[np.datetime64] | None, n_rows: int) -> TimeAxis:
    """Return the axis of a table with these time stamps (n,), or of its row numbers."""
    if time is None:
        rows = np.unique(np.array([0, n_rows - 1], dtype=np.int64))
        return TimeAxis(rows, rows.astype(np.float64), None, 1.0, GAP_STEPS)
    stamps = time.astype("datetime64[ns]").view(np.int64)  # (n,)
    at = (stamps - stamps[0]) / 1e6  # (n,) ms
    steps = np.diff(at)
    positive = steps[steps > 0]
    step = float(np.median(positive)) if len(positive) else 1.0
    gap = GAP_STEPS * step
    rows = _knots(np.diff(stamps), steps > gap)
    return TimeAxis(rows, at[rows], float(stamps[0]) / 1e6, step, gap)


def _knots(steps: NDArray[np.int64], is_gap: NDArray[np.bool_]) -> NDArray[np.int64]:
    n_rows = len(steps) + 1
    bends = np.flatnonzero(np.diff(steps)) + 1  # rows where the step changes
    thin = bends[:: max(1, -(-len(bends) // MAX_KNOTS))]
    gaps = np.flatnonzero(is_gap)
    ends = np.array([0, n_rows - 1])
    return np.unique(np.concatenate([ends, thin, gaps, gaps + 1])).astype(np.int64)
