r"""Affiliation-F (Huet et al., 2022): how near predictions are to events, against chance.

Row i is the interval [i, i + 1). The zone :math:`E = [e_0, e_1)` of an event :math:`J = [s, t)`
reaches half-way to the neighbouring events, or to the series' ends.

Precision of a zone is the mean over the predicted part of the zone of the chance that a random
point of the zone lies farther from :math:`J`: 1 inside :math:`J`, and at distance :math:`d`
outside, with :math:`m = \min(s - e_0, e_1 - t)`,

.. math:: \bar F(d) = 1 - (|J| + d + \min(d, m)) / |E|.

It is an integral over rows, so rows are summed by zone and level. Zones without a prediction are
left out of the mean.

Recall of an event is the mean over :math:`y \in J` of the chance that a random point of the zone
lies farther from :math:`y` than the nearest predicted point of the zone does:

.. math:: \bar F_y(d) = 1 - (d + \min(d, y - e_0, e_1 - y)) / |E|.

It is 1 on predicted rows. In a gap between predictions, only the gap's two ends matter, so each
gap is integrated once, in closed form, however many thresholds leave it as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.metrics._order import Levels, Runs, spread, unpredicted_runs
from vace_ad.metrics.events import Events
from vace_ad.metrics.ranges import CELLS

_EPS = 1e-15  # TSB-AD's addend against 0 / 0


class Zones(NamedTuple):
    """Events ``[start, stop)`` and their zones ``[left, right)``."""

    start: NDArray[np.float64]  # (n_events,)
    stop: NDArray[np.float64]  # (n_events,)
    left: NDArray[np.float64]  # (n_events,)
    right: NDArray[np.float64]  # (n_events,)


def affiliation_f(anomalous: NDArray[np.bool_], events: Events, levels: Levels) -> float:
    """Affiliation-F at the best of the thresholds; NaN where no row is ever predicted."""
    some = levels.predicted() > 0  # (K,)
    if not some.any():
        return float("nan")
    start, stop = events.starts.astype(np.float64), events.stops.astype(np.float64)
    borders = (stop[:-1] + start[1:]) / 2
    zones = Zones(start, stop, np.append(0.0, borders), np.append(borders, anomalous.size))
    precision = _precision(zones, levels)[some]
    recall = _recall(anomalous, events, zones, levels)[some]
    return float(np.max(2 * precision * recall / (precision + recall + _EPS)))


def _precision(zones: Zones, levels: Levels) -> NDArray[np.float64]:
    """Mean precision of the zones with a prediction, at each threshold. (K,)."""
    n = levels.rows.size
    halves = zones.left[zones.left % 1 != 0]  # borders in the middle of a row cut it in two
    begins = np.insert(np.arange(n, dtype=np.float64), np.ceil(halves).astype(np.intp), halves)
    sizes = np.diff(begins, append=n)  # (n_pieces,)
    rows = levels.rows[begins.astype(np.intp)]
    firsts = np.append(np.searchsorted(begins, zones.left), begins.size)  # (n_events + 1,)
    owner = np.repeat(np.arange(zones.left.size), np.diff(firsts))
    values = _nearness(zones, owner, begins, sizes)

    total, zones_hit = np.zeros(levels.thresholds), np.zeros(levels.thresholds, dtype=np.intp)
    step = max(1, CELLS // (levels.thresholds + 1))
    for begin in range(0, zones.left.size, step):
        end = min(begin + step, zones.left.size)
        part = slice(firsts[begin], firsts[end])
        shape = (end - begin, levels.thresholds + 1)
        cell = (owner[part] - begin) * shape[1] + rows[part]
        near, size = (
            np.bincount(cell, weights[part], minlength=shape[0] * shape[1]).reshape(shape)
            for weights in (values, sizes)
        )
        near = np.cumsum(near[:, :0:-1], axis=1)[:, ::-1]  # (zones in part, K)
        size = np.cumsum(size[:, :0:-1], axis=1)[:, ::-1]
        total += np.divide(near, size, out=np.zeros_like(near), where=size > 0).sum(axis=0)
        zones_hit += np.count_nonzero(size, axis=0)
    return total / np.maximum(zones_hit, 1)


def _nearness(
    zones: Zones,
    owner: NDArray[np.intp],
    begins: NDArray[np.float64],
    sizes: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Integrate the precision's chance over each piece of a row. (n_pieces,)."""
    start, stop = zones.start[owner], zones.stop[owner]
    width = (zones.right - zones.left)[owner]
    margin = np.minimum(zones.start - zones.left, zones.right - zones.stop)[owner]
    near = np.maximum(start - begins - sizes, begins - stop)  # smallest distance, < 0 inside
    far = near + sizes
    low, high = np.minimum(near, margin), np.minimum(far, margin)
    capped = (high - low) * (high + low) / 2 + margin * (far - near - (high - low))
    linear = sizes * (near + far) / 2
    outside: NDArray[np.float64] = sizes - (capped + linear + (stop - start) * sizes) / width
    return np.where(near < 0, sizes, outside)


def _recall(
    anomalous: NDArray[np.bool_], events: Events, zones: Zones, levels: Levels
) -> NDArray[np.float64]:
    """Mean recall of the events at each threshold. (K,)."""
    lengths = events.stops - events.starts
    shares = np.repeat(1 / lengths, lengths)  # of a row in its event
    hits = levels.of(anomalous).predicted(shares)

    gaps = unpredicted_runs(levels)
    before = np.append(0, np.cumsum(anomalous))
    gaps = Runs(*(field[before[gaps.stops] > before[gaps.starts]] for field in gaps))
    near = spread(gaps, levels.thresholds, _gap_recall(gaps, zones, anomalous.size))
    mean: NDArray[np.float64] = (hits + near) / lengths.size
    return mean


def _gap_recall(gaps: Runs, zones: Zones, n: int) -> NDArray[np.float64]:
    """Integrate the recall's chance over the parts of events in each gap. (n_gaps,).

    The prediction at a gap's left end serves only the event in whose zone it ends, and likewise
    at the right; where both serve one event, each serves up to the middle.
    """
    a, b = gaps.starts.astype(np.float64), gaps.stops.astype(np.float64)
    borders = zones.left[1:]
    left_zone = np.searchsorted(borders, a, side="left")  # zone whose (left, right] holds a
    right_zone = np.searchsorted(borders, b, side="right")  # zone whose [left, right) holds b
    has_left, has_right = gaps.starts > 0, gaps.stops < n
    middle = np.where(has_left & has_right & (left_zone == right_zone), (a + b) / 2, np.nan)

    start, stop = zones.start[left_zone], zones.stop[left_zone]
    u0, u1 = np.maximum(start - a, 0), np.fmin(middle, np.minimum(stop, b)) - a
    reach = zones.right[left_zone] - a
    left = _approach(u0, u1, reach, (zones.right - zones.left)[left_zone]) / (stop - start)

    start, stop = zones.start[right_zone], zones.stop[right_zone]
    u0, u1 = np.maximum(b - stop, 0), b - np.fmax(middle, np.maximum(start, a))
    reach = b - zones.left[right_zone]
    right = _approach(u0, u1, reach, (zones.right - zones.left)[right_zone]) / (stop - start)
    return np.where(has_left, left, 0) + np.where(has_right, right, 0)


def _approach(
    u0: NDArray[np.float64],
    u1: NDArray[np.float64],
    reach: NDArray[np.float64],
    width: NDArray[np.float64],
) -> NDArray[np.float64]:
    r"""Integrate the chance over points at distance u0 to u1 from a prediction; 0 if u1 <= u0.

    The zone ends at distance ``reach`` behind these points, so the integrand is
    :math:`1 - (u + \min(u, reach - u)) / width`: of slope 2 up to half of the reach, then flat.
    """

    def primitive(u: NDArray[np.float64]) -> NDArray[np.float64]:
        half = reach / 2
        return np.where(u <= half, u * u, half * (2 * u - half))

    area: NDArray[np.float64] = (u1 - u0) - (primitive(u1) - primitive(u0)) / width
    return np.where(u1 > u0, area, 0)
