"""Scores sorted once; what every threshold predicts follows from the order."""

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


def predicted_levels(predictions: NDArray[np.bool_]) -> Levels:
    """Levels of given predictions: one threshold, which each row passes or not."""
    return Levels(predictions.astype(np.intp), 1)
