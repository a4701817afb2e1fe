"""The unbroken runs of predicted rows at all thresholds at once.

Raising the threshold splits and shrinks runs; they form a tree with at most as many nodes as rows.
Each node is found from its lowest row: it reaches to the nearest lower row on either side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.metrics._order import Levels


class Runs(NamedTuple):
    """Maximal runs of predicted rows ``[starts, stops)``, at thresholds ``[first, last)``."""

    starts: NDArray[np.intp]  # (n_runs,)
    stops: NDArray[np.intp]  # (n_runs,)
    first: NDArray[np.intp]  # (n_runs,)
    last: NDArray[np.intp]  # (n_runs,)


def predicted_runs(levels: Levels) -> Runs:
    """Find every run of predicted rows and the thresholds at which it is one."""
    rows = levels.rows
    bounds = np.concatenate([[0], np.flatnonzero(rows[1:] != rows[:-1]) + 1, [rows.size]])
    heights = np.zeros(bounds.size + 1, dtype=np.intp)  # one a plateau; 0 beyond both ends
    heights[1:-1] = rows[bounds[:-1]]

    after = _next_lower(heights)
    before = heights.size - 1 - _next_lower(heights[::-1])[::-1]
    nodes = np.flatnonzero(heights)
    # Plateaus of one height with one lower neighbour to the left are one run: keep the first.
    keys = before[nodes] * (levels.thresholds + 1) + heights[nodes]
    order = np.argsort(keys)
    nodes = nodes[order[np.diff(keys[order], prepend=-1) != 0]]

    left, right = before[nodes], after[nodes]
    first = np.maximum(heights[left], heights[right])
    return Runs(bounds[left], bounds[right - 1], first, heights[nodes])


def unpredicted_runs(levels: Levels) -> Runs:
    """Find every run of rows that are not predicted and the thresholds at which it is one."""
    count = levels.thresholds
    runs = predicted_runs(Levels(count - levels.rows, count))  # at thresholds count - 1 - k
    return Runs(runs.starts, runs.stops, count - runs.last, count - runs.first)


def spread(runs: Runs, count: int, weights: NDArray[Any] | None = None) -> NDArray[Any]:
    """Count the runs, or sum their weights, at each threshold. (K,)."""
    opened = np.bincount(runs.first, weights, minlength=count + 1)
    closed = np.bincount(runs.last, weights, minlength=count + 1)
    return np.cumsum(opened - closed)[:count]


def _next_lower(heights: NDArray[np.intp]) -> NDArray[np.intp]:
    """Index of the nearest lower entry to the right of each positive entry; the last entry is 0.

    All entries between an entry and where it points are at least as high, so one that points to a
    height not lower may point on to where that one points. Chains double while they grow, and a
    finished pointer leads to a lower height, so with K heights about K + log(n) rounds suffice.
    """
    target = np.arange(1, heights.size + 1)
    target[-1] = heights.size - 1
    active = np.flatnonzero((heights[:-1] > 0) & (heights[1:] >= heights[:-1]))
    while active.size:
        onward = target[target[active]]
        target[active] = onward
        active = active[heights[onward] >= heights[active]]
    return target
