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
from vace_ad.metrics.events import Events, find_events

_FAR = np.int64(2**40)  # farther than any window reaches


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
    >>> result = vus([0, 0, 1, 1, 0, 0], [0.1, 0.3, 0.9, 0.8, 0.5, 0.2], window=2)
    >>> round(result.vus_roc, 3), round(result.vus_pr, 3)
    (1.0, 1.0)
    """
    anomalous = _check.both_classes(labels)
    values = _check.finite(scores, "scores").astype(np.float64, copy=False)
    _check.same_length(anomalous, values, "scores")
    window = _check.at_least(window, 0, "window")
    thresholds = _check.at_least(thresholds, 1, "thresholds")
    curves = _curves(anomalous, values, window, thresholds)

    tpr, fpr, precision = curves
    roc = ((fpr[:, 1:] - fpr[:, :-1]) * (tpr[:, 1:] + tpr[:, :-1]) / 2).sum(axis=1)  # (W + 1,)
    pr = ((tpr[:, 1:-1] - tpr[:, :-2]) * precision[:, 1:]).sum(axis=1)  # (W + 1,)
    return VUS(float(roc.mean()), float(pr.mean()), curves if surfaces else None)


def _curves(
    anomalous: NDArray[np.bool_], scores: NDArray[np.float64], window: int, thresholds: int
) -> Surfaces:
    n = scores.size
    ordered = np.sort(scores)
    slices = np.linspace(0, n - 1, thresholds).astype(np.int64)
    cuts = ordered[n - 1 - slices]  # (K,) falling
    predicted = n - np.searchsorted(ordered, cuts, side="left")  # (K,) N
    ranks = np.searchsorted(-cuts, -scores, side="left")  # (n,) K where never predicted

    events = find_events(anomalous)
    inside = _cumulated(ranks[anomalous], thresholds)  # (K,) T
    beside = _beside(anomalous, ranks, events, window, thresholds)  # (W + 1, K) B
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


def _cumulated(ranks: NDArray[np.int64], thresholds: int) -> NDArray[np.int64]:
    """Count how many are predicted at each threshold. (m,) -> (K,)."""
    return np.cumsum(np.bincount(ranks, minlength=thresholds + 1)[:thresholds])


def _beside(
    anomalous: NDArray[np.bool_],
    ranks: NDArray[np.int64],
    events: Events,
    window: int,
    thresholds: int,
) -> NDArray[np.float64]:
    """Sum the weights B of the predicted rows beside the events. Returns (W + 1, K)."""
    beside = np.zeros((window + 1, thresholds))
    nearest, second, rows = _distances(anomalous, events, window // 2)
    row_ranks = ranks[rows]
    reach = int(nearest.max(initial=0))
    shape = (reach + 1, thresholds + 1)
    flat = np.bincount(nearest * shape[1] + row_ranks, minlength=shape[0] * shape[1])
    single = np.cumsum(flat.reshape(shape)[:, :thresholds], axis=1, dtype=np.float64)
    full = np.zeros(thresholds)  # rows within reach of two events: they weigh 1

    # rows with two events in reach, in the order in which the second one comes into reach
    double = np.flatnonzero(second <= window // 2)
    double = double[np.argsort(second[double], kind="stable")]
    turns = np.searchsorted(second[double], np.arange(window // 2 + 2))

    for half in range(1, window // 2 + 1):
        for row in double[turns[half] : turns[half + 1]]:
            single[nearest[row], row_ranks[row] :] -= 1
            full[row_ranks[row] :] += 1
        near = min(half, reach)
        distance = np.arange(1, near + 1)
        for w in (2 * half, 2 * half + 1):
            if w <= window:
                beside[w] = np.sqrt(1 - distance / w) @ single[1 : near + 1] + full
    return beside


def _distances(
    anomalous: NDArray[np.bool_], events: Events, reach: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Find the normal rows within reach of an event and their two smallest distances to events."""
    rows = np.flatnonzero(~anomalous)
    last = np.concatenate([[-_FAR, -_FAR], events.stops - 1])  # last rows of the events to the left
    first = np.concatenate([events.starts, [_FAR, _FAR]])  # first rows of those to the right
    passed = np.searchsorted(events.starts, rows)  # events to the left of the row
    left, right = rows - last[passed + 1], first[passed] - rows
    nearest = np.minimum(left, right)
    near = nearest <= reach
    rows, passed, nearest = rows[near], passed[near], nearest[near]
    second = np.maximum(left[near], right[near])
    np.minimum(second, rows - last[passed], out=second)
    np.minimum(second, first[passed + 1] - rows, out=second)
    return nearest, second, rows


def _found(
    ranks: NDArray[np.int64], events: Events, window: int, thresholds: int
) -> NDArray[np.float64]:
    """Share of widened events with a predicted row, for each half-width. (W // 2 + 1, K)."""
    starts, last = events.starts, events.stops - 1
    gaps = starts[1:] - last[:-1]
    bounds = np.stack([starts, events.stops], axis=1).ravel()
    padded = np.append(ranks, thresholds)  # reduceat wants every index inside
    best = np.minimum.reduceat(padded, bounds)[0::2]  # (n_events,) best rank in the event
    found = np.empty((window // 2 + 1, thresholds))
    for half in range(window // 2 + 1):
        if half:
            np.minimum(best, ranks[np.maximum(starts - half, 0)], out=best)
            np.minimum(best, ranks[np.minimum(last + half, ranks.size - 1)], out=best)
        heads = np.concatenate([[0], np.flatnonzero(gaps > 2 * half) + 1])
        groups = np.minimum.reduceat(best, heads)
        found[half] = _cumulated(groups, thresholds) / groups.size
    return found
