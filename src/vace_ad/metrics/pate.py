r"""PATE, proximity-aware evaluation (Ghorbani et al., 2024, arXiv 2405.12096), without its loops.

Each event has a zone of up to `early` rows before it and `late` rows after it. A zone ends where
the next event begins, and the zone before an event begins where the zone after the event before
ends. At a threshold every predicted row is a true positive by a weight :math:`w` and a false
positive by :math:`1 - w`:

* inside an event :math:`w = 1`, outside events and zones 0;
* after an event with centre :math:`c`, in a zone whose last row is :math:`b`,
  :math:`w = (b - x) / (b - c)`;
* before an event, in a zone whose first row is :math:`a`, :math:`w = (x - a) / (c - a)`, but 0
  while no row of the event is predicted.

A row of an event that is not predicted is a false negative. It weighs 1 where no row of the event
is predicted, and where it lies among the first :math:`\delta + 1` rows of the event, where
:math:`\delta` is the length of the first predicted run in it; a later row at offset :math:`j` in
an event of :math:`L` rows weighs

.. math::

    1 - \frac{\sum_{i=0}^{\delta} (j - i)}{\sum_{i=0}^{L-1} i}

The area under the precision-recall curve (trapezoids, from recall 0 at precision 1; points at
which recall falls are left out) is averaged over zones of several lengths.

What makes it quick: a row is predicted from some threshold on, its *rank*; counts of ranks,
cumulated, serve all thresholds. Only false negatives need the rows of an event again, and only at
the thresholds at which one of them changes.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vace_ad.metrics import _check
from vace_ad.metrics._order import cumulated
from vace_ad.metrics.events import Events, find_events, ranges_of, reduce_events

_CELLS = 4_000_000  # of a matrix thresholds × rows of an event that is held at a time


def pate(
    labels: ArrayLike,
    scores: ArrayLike,
    early: int = 100,
    late: int = 100,
    splits: int = 1,
    thresholds: int | None = 250,
) -> float:
    """Compute PATE, equal to the authors' code within rounding.

    Parameters
    ----------
    labels
        0/1 for each row, 1 = anomalous; both must occur.
    scores
        A finite score for each row, high = anomalous.
    early, late
        Rows of the longest zones before and after an event. The authors take them from the
        series as VUS does its window: see :func:`sliding_window`.
    splits
        The mean is over zones of 0, 1/splits, ..., 1 times these lengths, each pair of them.
    thresholds
        How many: evenly spaced percentiles of the scores at which the number of predicted
        anomalous rows changes. None takes every score.

    Examples
    --------
    >>> from vace_ad.metrics import pate
    >>> labels = [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]
    >>> round(pate(labels, [0, 0, 0, 1, 1, 1, 0, 0, 0, 0], early=2, late=2), 3)
    1.0
    >>> late, lost = [0, 0, 0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    >>> round(pate(labels, late, early=2, late=2), 3), round(pate(labels, lost, 2, 2), 3)
    (0.58, 0.167)
    """
    anomalous, values = _check.labels_and_scores(labels, scores)
    early, late = _check.at_least(early, 0, "early"), _check.at_least(late, 0, "late")
    splits = _check.at_least(splits, 1, "splits")
    cuts = _cuts(anomalous, values.astype(np.float64), thresholds)  # (K,) falling
    ranks = cuts.size - np.searchsorted(cuts[::-1], values, side="right")  # K: never predicted
    events = find_events(anomalous)

    predicted = cumulated(ranks, cuts.size)  # (K,) rows
    inside = cumulated(ranks[anomalous], cuts.size)  # (K,) of them in events
    missed = _missed(ranks, events, cuts.size)  # (K,) FN
    found = reduce_events(np.minimum, ranks, events)  # (n_events,) rank from which it is seen
    areas = []
    for zones in product(_lengths(early, splits), _lengths(late, splits)):
        true = inside + _beside(ranks, found, events, zones, cuts.size)  # (K,) TP
        areas.append(_area(_ratio(true, predicted), _ratio(true, true + missed)))
    return float(np.mean(areas))


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Parts of wholes, 0 of nothing."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _cuts(
    anomalous: NDArray[np.bool_], scores: NDArray[np.float64], thresholds: int | None
) -> NDArray[np.float64]:
    """The thresholds, falling."""
    distinct, place = np.unique(scores, return_inverse=True)
    cuts = distinct[::-1]
    if thresholds is None:
        return cuts
    thresholds = _check.at_least(thresholds, 1, "thresholds")
    if cuts.size > 2:  # leave out those between which no anomalous row is gained
        gained = np.bincount(place[anomalous], minlength=cuts.size)[::-1] > 0
        kept = np.ones(cuts.size, dtype=np.bool_)
        kept[1:-1] = gained[1:-1] | gained[2:]
        cuts = cuts[kept]
    return np.percentile(cuts, np.linspace(100, 0, thresholds))


def _lengths(longest: int, splits: int) -> NDArray[np.intp]:
    return np.linspace(0, longest, splits + 1).astype(np.intp)


def _beside(
    ranks: NDArray[np.intp],
    found: NDArray[np.intp],
    events: Events,
    zones: tuple[int, int],
    count: int,
) -> NDArray[np.float64]:
    """True positives among the predicted rows of zones of this length. (K,)."""
    early, late = zones
    starts, stops = events
    after = np.minimum(stops + late, np.append(starts[1:], ranks.size))  # where zones end
    before = np.maximum(starts - early, np.append(0, after[:-1]))  # and begin
    centres = (starts + stops - 1) / 2

    rows, event = _rows_of(stops, after)
    weights = (after[event] - 1 - rows) / (after - 1 - centres)[event]
    true = cumulated(ranks[rows], count, weights)

    rows, event = _rows_of(before, starts)
    weights = (rows - before[event]) / (centres - before)[event]
    return true + cumulated(np.maximum(ranks[rows], found[event]), count, weights)


def _rows_of(
    starts: NDArray[np.intp], stops: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All rows of half-open ranges, and the number of the range of each."""
    sizes = stops - starts
    return ranges_of(starts, sizes), np.repeat(np.arange(sizes.size), sizes)


def _missed(ranks: NDArray[np.intp], events: Events, count: int) -> NDArray[np.float64]:
    """Summed weights of the rows of events that are not predicted. (K,)."""
    steps = np.zeros(count + 1)  # changes from one threshold to the next
    for start, stop in zip(*events, strict=True):
        mine = ranks[start:stop]
        levels = np.unique(mine)  # (U,) where anything changes
        levels = levels[levels < count]
        weights = np.append(stop - start, _missed_in(mine, levels))
        steps[0] += weights[0]
        np.add.at(steps, levels, np.diff(weights))
    return np.cumsum(steps[:count])


def _missed_in(ranks: NDArray[np.intp], levels: NDArray[np.intp]) -> NDArray[np.float64]:
    """Summed weights of one event's rows that are not predicted, from each level on. (U,)."""
    length = ranks.size
    weights = np.empty(levels.size)
    offsets = np.arange(length)
    whole = length * (length - 1) / 2
    at_once = max(1, _CELLS // length)
    for first in range(0, levels.size, at_once):
        part = slice(first, first + at_once)
        out = ranks[None, :] > levels[part, None]  # (u, L) not predicted
        begin = np.argmin(out, axis=1)  # the first predicted row
        ended = out & (offsets > begin[:, None])
        end = np.where(ended.any(axis=1), np.argmax(ended, axis=1), length)
        delta = end - begin  # (u,) rows of the first predicted run
        late = out & (offsets > delta[:, None])
        number, places = late.sum(axis=1), late @ offsets
        saved = (delta + 1) * places - delta * (delta + 1) / 2 * number
        weights[part] = out.sum(axis=1) - saved / max(whole, 1)
    return weights


def _area(precision: NDArray[np.float64], recall: NDArray[np.float64]) -> float:
    """Area under the curve from (0, 1) on, without the points at which recall falls."""
    precision, recall = np.append(1.0, precision), np.append(0.0, recall)
    kept = recall >= np.maximum.accumulate(recall)
    return float(np.trapezoid(precision[kept], recall[kept]))
