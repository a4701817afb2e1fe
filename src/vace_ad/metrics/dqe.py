r"""DQE, detection quality evaluation (Li et al., 2026, arXiv 2603.06131), without its loops.

The definition is that of the authors' public code at commit 055c23e; earlier commits judge false
alarms by other formulas. Scores are scaled to [0, 1] and cut at 100 evenly spaced thresholds. Each
event has a near zone of up to :math:`r` rows on either side, which ends where the next event
begins, and beyond it a far zone, up to the middle of what is left between two events. Rows in
reach of two events belong to the near zone of the earlier one. Predictions are cut at the borders
of all zones. For each event and threshold,

* captured: 1 if any row of the event is predicted, else 0;
* near: 0 without a prediction in the near zones, else
  :math:`(1 - d / r)(1 - t / 2r)`, with :math:`d` the gap between the event and the nearest piece of
  a prediction there and :math:`t` the time that these pieces take; 1 where the event is captured
  and nothing is predicted in its near and far zones;
* quiet: 1 without a prediction in the far zones, else :math:`(1 - c)(1 - f)`, with :math:`c` the
  share of these zones that is predicted and :math:`f = 1 - \sum_i l_i^2 / (\sum_i l_i)^2` how
  scattered the pieces, of lengths :math:`l_i`, are.

DQE is the mean of :math:`quiet \cdot (captured + near) / 2` over events and thresholds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vace_ad.metrics import _check
from vace_ad.metrics.events import Events, find_events, ranges_of

THRESHOLDS = 100
_ZONES = 5  # of an event: far before, near before, the event, near after, far after
_SHARE = 22  # a near zone is at most this part of the normal rows, where its length is not given

Array = NDArray[np.float64]


class _Pieces(NamedTuple):
    """Predictions at a threshold, cut at the borders of zones; each (n_events, 5)."""

    time: Array  # in the zone
    squares: Array  # of the pieces' lengths, summed
    first: Array  # where the first piece begins; ∞ without one
    last: Array  # where the last piece ends; -∞ without one


def dqe(labels: ArrayLike, scores: ArrayLike, near: int | None = None) -> float:
    """Compute DQE, equal to the authors' code within rounding.

    Parameters
    ----------
    labels
        0/1 for each row, 1 = anomalous; both must occur.
    scores
        A finite score for each row, high = anomalous.
    near
        Rows of a near zone. The authors' experiments take the window of VUS; None takes the mean
        length of the events, but at most a 22nd of the normal rows.

    Examples
    --------
    >>> from vace_ad.metrics import dqe
    >>> labels = [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    >>> late, lost = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]
    >>> [round(dqe(labels, each, near=2), 3) for each in (labels, late, lost)]
    [1.0, 0.375, 0.0]
    """
    anomalous, given = _check.labels_and_scores(labels, scores)
    values = given.astype(np.float64)
    events = find_events(anomalous)
    if near is None:
        mean = (events.stops - events.starts).mean()
        near = int(min(mean, np.count_nonzero(~anomalous) / _SHARE))
    near = _check.at_least(near, 0, "near")
    borders = _borders(events, near, anomalous.size)
    far = np.diff(borders, axis=1)[:, [0, 4]].sum(axis=1)  # (n_events,) length of the far zones
    lowest, highest = values.min(), values.max()
    scaled = (values - lowest) / (highest - lowest) if highest > lowest else np.zeros_like(values)
    qualities = []
    for threshold in np.linspace(1, 0, THRESHOLDS + 1)[:-1]:
        pieces = _cut(find_events(scaled >= threshold), borders)
        qualities.append(_quality(pieces, borders, near, far).mean())
    return float(np.mean(qualities))


def _borders(events: Events, near: int, n: int) -> Array:
    """Where the zones of each event begin and end, one after the other. (n_events, 6)."""
    starts, stops = (each.astype(np.float64) for each in events)
    after = np.minimum(stops + near, np.append(starts[1:], n))  # end of the near zone after it
    before = np.maximum(starts - near, np.append(0, after[:-1]))
    middles = (after[:-1] + before[1:]) / 2
    edges = np.append(0, middles), before, starts, stops, after, np.append(middles, n)
    return np.stack(edges, axis=1)


def _cut(runs: Events, borders: Array) -> _Pieces:
    """Cut predictions at all borders, and sum up by event and zone."""
    edges = borders[:, :-1].ravel()  # where each zone begins
    ends = borders[:, 1:].ravel()
    first = np.searchsorted(edges, runs.starts, side="right") - 1  # zone of a run's first moment
    last = np.searchsorted(edges, runs.stops, side="left") - 1
    counts = last - first + 1
    zones = ranges_of(first, counts)
    begin = np.maximum(np.repeat(runs.starts, counts), edges[zones])
    end = np.minimum(np.repeat(runs.stops, counts), ends[zones])
    some = end > begin  # a zone may be empty
    zones, begin, end = zones[some], begin[some], end[some]

    shape = (len(borders), _ZONES)
    time = np.bincount(zones, end - begin, minlength=edges.size).astype(np.float64)
    squares = np.bincount(zones, (end - begin) ** 2, minlength=edges.size).astype(np.float64)
    begins, stops = np.full(edges.size, np.inf), np.full(edges.size, -np.inf)
    np.minimum.at(begins, zones, begin)
    np.maximum.at(stops, zones, end)
    return _Pieces(
        time.reshape(shape), squares.reshape(shape), begins.reshape(shape), stops.reshape(shape)
    )


def _quality(pieces: _Pieces, borders: Array, near: int, far: Array) -> Array:
    """The quality of each event at a threshold. (n_events,)."""
    time = pieces.time
    captured = time[:, 2] > 0
    beside, away = time[:, [1, 3]].sum(axis=1), time[:, [0, 4]].sum(axis=1)  # (n_events,)

    gap = np.minimum(borders[:, 2] - pieces.last[:, 1], pieces.first[:, 3] - borders[:, 3])
    seen = beside > 0
    close = np.zeros(len(time))
    if near:
        close[seen] = (1 - gap[seen] / near) * (1 - beside[seen] / (2 * near))
    close[captured & ~seen & (away == 0)] = 1.0

    quiet = np.ones(len(time))
    loud = away > 0
    scattered = pieces.squares[loud][:, [0, 4]].sum(axis=1) / away[loud] ** 2  # 1 − f
    quiet[loud] = (1 - away[loud] / far[loud]) * scattered
    return quiet * (captured + close) / 2
