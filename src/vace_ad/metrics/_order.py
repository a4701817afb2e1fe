"""Scores sorted once; what every threshold predicts follows from the order.

Raising the threshold splits and shrinks runs of predicted rows; they form a tree with at most as
many nodes as rows. Each node is found from its lowest row: it reaches to the nearest lower row on
either side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError

GRID = 100  # thresholds that TSB-AD tries where a measure needs predictions


class Order(NamedTuple):
    """Scores in rising order."""

    rows: NDArray[np.intp]  # (n,) row of the i-th smallest score
    scores: NDArray[np.float64]  # (n,) the i-th smallest score


class Levels(NamedTuple):
    """At how many of ``thresholds`` rising thresholds each row is predicted.

    Row i is predicted at the thresholds 0, 1, ..., ``rows[i] - 1``, that is at k < ``rows[i]``.
    """

    rows: NDArray[np.intp]  # (n,)
    thresholds: int

    def of(self, which: NDArray[np.bool_]) -> Levels:
        """Levels of some of the rows."""
        return Levels(self.rows[which], self.thresholds)

    def predicted(self, weights: NDArray[Any] | None = None) -> NDArray[Any]:
        """Count the rows, or sum their weights, that are predicted at each threshold. (K,)."""
        totals = np.bincount(self.rows, weights, minlength=self.thresholds + 1)
        return np.cumsum(totals[:0:-1])[::-1]


def sort_scores(scores: NDArray[np.floating[Any]]) -> Order:
    """Sort once for all measures."""
    values = scores.astype(np.float64, copy=False)
    rows = np.argsort(values)
    return Order(rows, values[rows])


def grid_levels(scores: NDArray[np.floating[Any]], order: Order) -> Levels:
    """Levels on an even grid from the smallest to the largest score; above it means predicted.

    The grid is laid in the scores' own precision, so that float32 scores meet the same
    thresholds as in TSB-AD.
    """
    smallest, largest = scores.dtype.type(order.scores[0]), scores.dtype.type(order.scores[-1])
    with np.errstate(over="ignore"):
        if not np.isfinite(largest - smallest):
            raise InputError(
                f"scores range from {smallest} to {largest}, wider than {scores.dtype} can hold; "
                "expected a finite range: rescale the scores"
            )
    grid = np.linspace(smallest, largest, GRID)  # (K,) rising
    below = np.searchsorted(order.scores, grid.astype(np.float64), side="right")  # (K,)
    steps = np.diff(below, prepend=0, append=order.scores.size)  # rows that share a level
    levels = np.empty(order.rows.size, dtype=np.intp)
    levels[order.rows] = np.repeat(np.arange(GRID + 1), steps)
    return Levels(levels, GRID)


def cumulated(
    ranks: NDArray[np.intp], count: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """How many rows are predicted at each threshold, or their weights. (m,) -> (K,).

    The rank of a row is the number of the first threshold at which it is predicted.
    """
    return np.cumsum(np.bincount(ranks, weights, minlength=count + 1)[:count]).astype(np.float64)


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
