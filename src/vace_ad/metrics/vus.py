r"""Volume under the surface (VUS), as TSB-AD 1.5 defines it, without its loops.

For a window :math:`w`, each event is widened on both sides by :math:`h = \lfloor w/2 \rfloor`
rows. A row at distance :math:`d \le h` from an event weighs :math:`\sqrt{1 - d/w}`; contributions
of several events add up and stop at 1. At a threshold, with :math:`T` the predicted rows inside
events, :math:`B` the summed weights of the predicted rows beside them, :math:`P` the anomalous
rows, :math:`N` the predicted rows and :math:`n` all rows,

.. math::

    TP = T + B, \quad P_w = P + B/2, \quad precision = TP / N, \quad FPR = (N - TP) / (n - P_w),

    TPR = \min(TP / P_w, 1) \cdot (\text{widened events with a predicted row}) /
          (\text{widened events}),

where widened events that overlap count as one. Each window gives a ROC curve (trapezoids) and a
precision-recall curve (steps); VUS is the mean of the areas over the windows 0, 1, ..., W.

What makes it quick:

* A row is predicted from some threshold on. That threshold's number, its *rank*, found once,
  replaces all comparisons; counts of ranks, cumulated, serve all thresholds.
* :math:`d \le w/2` makes each contribution at least :math:`\sqrt{1/2}`, so two of them always
  exceed 1. Hence a row's weight depends only on its distances to the nearest and the
  second-nearest event, and the rows can be counted by distance and rank.
* Growing :math:`h` by one adds two rows to an event, so the best rank in a widened event is kept
  up to date with two look-ups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vace_ad.metrics import _check
from vace_ad.metrics._order import Order, cumulated, sort_scores
from vace_ad.metrics.events import Events, find_events, ranges_of, reduce_events

_FAR = 2**40  # farther than any window reaches


class Surfaces(NamedTuple):
    """The curves behind a VUS, one row a window 0, 1, ..., W, in order of falling threshold."""

    tpr: NDArray[np.float64]  # (W + 1, thresholds + 2), from 0 to 1
    fpr: NDArray[np.float64]  # (W + 1, thresholds + 2), from 0 to 1
    precision: NDArray[np.float64]  # (W + 1, thresholds + 1), goes with tpr[:, :-1]


class VUS(NamedTuple):
    """Volumes under the ROC and the precision-recall surface."""

    vus_roc: float
    vus_pr: float
    surfaces: Surfaces | None = None


def vus(
    labels: ArrayLike,
    scores: ArrayLike,
    window: int = 100,
    thresholds: int = 250,
    surfaces: bool = False,
) -> VUS:
    """Compute VUS-ROC and VUS-PR, equal to TSB-AD 1.5 within rounding.

    Time grows with the rows and hardly with the number of events; memory is of the order of the
    rows plus ``window × thresholds``.

    Parameters
    ----------
    labels
        0/1 for each row, 1 = anomalous; both must occur.
    scores
        A finite score for each row, high = anomalous.
    window
        The largest window, in rows; the mean is over the windows 0, 1, ..., window.
    thresholds
        How many thresholds: the scores at evenly spaced ranks, from the largest to the smallest.
    surfaces
        Return the curves of all windows too.

    Examples
    --------
    >>> from vace_ad.metrics import vus
    >>> late = vus([0, 0, 1, 1, 0, 0, 0, 0], [1, 2, 3, 8, 9, 4, 3, 2], window=4)
    >>> round(late.vus_roc, 3), round(late.vus_pr, 3)
    (0.834, 0.659)
    """
    anomalous, values = _check.labels_and_scores(labels, scores)
    window = _check.at_least(window, 0, "window")
    thresholds = _check.at_least(thresholds, 1, "thresholds")
    events = find_events(anomalous)
    curves = curves_by_window(anomalous, sort_scores(values), events, window, thresholds)
    return VUS(*volumes(curves), curves if surfaces else None)


def volumes(curves: Surfaces) -> tuple[float, float]:
    """Mean areas under the ROC (trapezoids) and precision-recall (steps) curves."""
    tpr, fpr, precision = curves
    roc = ((fpr[:, 1:] - fpr[:, :-1]) * (tpr[:, 1:] + tpr[:, :-1]) / 2).sum(axis=1)  # (W + 1,)
    pr = ((tpr[:, 1:-1] - tpr[:, :-2]) * precision[:, 1:]).sum(axis=1)  # (W + 1,)
    return float(roc.mean()), float(pr.mean())


def curves_by_window(
    anomalous: NDArray[np.bool_], order: Order, events: Events, window: int, thresholds: int
) -> Surfaces:
    """Compute the curves of the windows 0, 1, ..., W from scores sorted once."""
    n = anomalous.size
    slices = np.linspace(0, n - 1, thresholds).astype(np.intp)
    cuts = order.scores[n - 1 - slices]  # (K,) falling
    predicted = n - np.searchsorted(order.scores, cuts, side="left")  # (K,) N
    ranks = np.empty(n, dtype=np.intp)  # K where never predicted
    steps = np.diff(predicted, prepend=0, append=n)
    ranks[order.rows[::-1]] = np.repeat(np.arange(thresholds + 1), steps)

    inside = cumulated(ranks[anomalous], thresholds)  # (K,) T
    beside = _beside(ranks, events, window, thresholds)  # (W + 1, K) B
    found = _found(ranks, events, window, thresholds)  # (W // 2 + 1, K)

    true = inside + beside  # (W + 1, K) TP
    positives = np.count_nonzero(anomalous) + beside / 2  # (W + 1, K) P_w
    tpr = np.zeros((window + 1, thresholds + 2))
    fpr = np.zeros((window + 1, thresholds + 2))
    precision = np.ones((window + 1, thresholds + 1))
    tpr[:, 1:-1] = np.minimum(true / positives, 1) * found[np.arange(window + 1) // 2]
    fpr[:, 1:-1] = (predicted - true) / (n - positives)
    precision[:, 1:] = true / predicted
    tpr[:, -1] = fpr[:, -1] = 1
    return Surfaces(tpr, fpr, precision)


def _beside(
    ranks: NDArray[np.intp], events: Events, window: int, thresholds: int
) -> NDArray[np.float64]:
    """Sum the weights B of the predicted rows beside the events. Returns (W + 1, K)."""
    rows, nearest, second = _neighbours(ranks.size, events, window // 2)
    reach = int(nearest.max(initial=0))
    shape = (reach + 1, thresholds + 1)
    cell = nearest * shape[1] + ranks[rows]
    single = np.bincount(cell, minlength=shape[0] * shape[1]).astype(np.float64)
    full = np.zeros(shape[1])  # rows that two events reach weigh 1, whatever their distances

    # rows that a second event will reach, in the order in which it does; short keys sort by radix
    turn = np.minimum(second, window // 2 + 1).astype(np.min_scalar_type(window // 2 + 1))
    order = np.argsort(turn, kind="stable")
    turns = np.searchsorted(turn[order], np.arange(window // 2 + 2))

    beside = np.zeros((window + 2, shape[1]))
    for half in range(1, window // 2 + 1):
        turned = cell[order[turns[half] : turns[half + 1]]]
        np.subtract.at(single, turned, 1)
        np.add.at(full, turned % shape[1], 1)
        near = min(half, reach)
        pair = np.array([[2 * half], [2 * half + 1]])  # the two windows of this half-width
        weights = np.sqrt(1 - np.arange(1, near + 1) / pair)  # (2, near)
        counts = single.reshape(shape)[1 : near + 1]  # (near, K + 1)
        beside[2 * half : 2 * half + 2] = weights @ counts + full
    return np.cumsum(beside[: window + 1, :thresholds], axis=1)


def _neighbours(
    n: int, events: Events, reach: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Find the normal rows within reach of an event, and their two smallest distances to events."""
    count = events.starts.size
    begins, ends = np.append(0, events.stops), np.append(events.starts, n)  # the gaps between
    head = np.minimum(ends - begins, reach)  # rows of a gap near the event before it
    head[0] = 0
    tail = np.minimum(ends - begins - head, reach)  # the other rows, near the event after it
    tail[-1] = 0
    sizes = np.stack([head, tail], axis=1).ravel()  # (2 * n_gaps,)
    firsts = np.stack([begins, ends - tail], axis=1).ravel()
    rows = ranges_of(firsts, sizes)
    gap = np.repeat(np.arange(count + 1), head + tail)  # as many events lie to the left

    last = np.concatenate([[-_FAR, -_FAR], events.stops - 1])  # last rows of events to the left
    first = np.concatenate([events.starts, [_FAR, _FAR]])  # first rows of events to the right
    left, right = rows - last[gap + 1], first[gap] - rows
    second = np.maximum(left, right)  # or two short events on the same side
    np.minimum(second, rows - last[gap], out=second)
    np.minimum(second, first[gap + 1] - rows, out=second)
    return rows, np.minimum(left, right), second


def _found(
    ranks: NDArray[np.intp], events: Events, window: int, thresholds: int
) -> NDArray[np.float64]:
    """Share of widened events with a predicted row, for each half-width. (W // 2 + 1, K)."""
    starts, last = events.starts, events.stops - 1
    gaps = starts[1:] - last[:-1]
    best = reduce_events(np.minimum, ranks, events)  # (n_events,) best rank in the event
    found = np.empty((window // 2 + 1, thresholds))
    for half in range(window // 2 + 1):
        if half:
            np.minimum(best, ranks[np.maximum(starts - half, 0)], out=best)
            np.minimum(best, ranks[np.minimum(last + half, ranks.size - 1)], out=best)
        heads = np.append(0, np.flatnonzero(gaps > 2 * half) + 1)  # the others overlap
        groups = np.minimum.reduceat(best, heads)
        found[half] = cumulated(groups, thresholds) / groups.size
    return found
