"""Measures that take rows one by one, and those that credit a whole event for one predicted row.

AUC-ROC, AUC-PR and Standard-F1; PA-F1 and Event-based-F1 follow TSB-AD 1.5 to the row, including
how it treats the ends of a series.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.metrics._order import Levels, Order
from vace_ad.metrics.events import Events, reduce_events

_SMOOTHING = 1e-5  # TSB-AD's addend below its best F1, against 0 / 0


class PointCurve(NamedTuple):
    """True and false positives with the threshold at each distinct score, from the largest."""

    true: NDArray[np.int64]  # (m,)
    false: NDArray[np.int64]  # (m,)


def point_curve(anomalous: NDArray[np.bool_], order: Order) -> PointCurve:
    """Cumulate the sorted labels; rows of equal score enter together."""
    true = np.cumsum(anomalous[order.rows[::-1]], dtype=np.int64)
    falling = order.scores[::-1]
    closes = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))  # last row of each tie
    return PointCurve(true[closes], closes + 1 - true[closes])


def auc_roc(curve: PointCurve) -> float:
    """Area under the ROC curve, by trapezoids; in whole numbers until the last division."""
    widths = np.diff(curve.false, prepend=0)
    twice = 2 * curve.true - np.diff(curve.true, prepend=0)  # left plus right height
    return float(np.dot(widths, twice) / (2 * float(curve.true[-1]) * float(curve.false[-1])))


def auc_pr(curve: PointCurve) -> float:
    """Average precision: the precision at each threshold, weighted by the gain in recall."""
    precision = curve.true / (curve.true + curve.false)
    return float(np.dot(np.diff(curve.true, prepend=0), precision) / curve.true[-1])


def best_f1(curve: PointCurve) -> float:
    """Standard-F1 at the best of all thresholds, with TSB-AD's smoothing."""
    precision = curve.true / (curve.true + curve.false)
    recall = curve.true / curve.true[-1]
    return float(np.max(2 * precision * recall / (precision + recall + _SMOOTHING)))


def f1(anomalous: NDArray[np.bool_], levels: Levels) -> float:
    """Standard-F1 of given predictions, 0 where none is right."""
    true = levels.of(anomalous).predicted()
    return float(np.max(2 * true / (levels.predicted() + np.count_nonzero(anomalous))))


_EPS = 1e-15  # TSB-AD's addend against 0 / 0


def pa_f1(anomalous: NDArray[np.bool_], events: Events, levels: Levels) -> float:
    """Point-adjusted F1: one predicted row makes all rows of its event predicted.

    TSB-AD's adjustment never reaches back to row 0: in an event that starts there, that row
    counts only if predicted itself.
    """
    best = reduce_events(np.maximum, levels.rows, events)  # (n_events,)
    lengths = events.stops - events.starts
    true = Levels(best, levels.thresholds).predicted(lengths)  # (K,)
    if events.starts[0] == 0:
        thresholds = np.arange(levels.thresholds)
        true -= (levels.rows[0] <= thresholds) & (thresholds < best[0])
    false = levels.of(~anomalous).predicted()
    return float(np.max(2 * true / (true + false + np.count_nonzero(anomalous))))


def event_f1(anomalous: NDArray[np.bool_], events: Events, levels: Levels) -> float:
    """F1 of the recall of events and the precision of rows.

    TSB-AD looks at an event that touches the series' end without its last row; a one-row event
    there is never found.
    """
    rows = levels.rows
    if events.stops[-1] == rows.size:
        rows = rows.copy()
        rows[-1] = 0
    best = reduce_events(np.maximum, rows, events)  # (n_events,)
    recall = Levels(best, levels.thresholds).predicted() / best.size  # (K,)
    true = levels.of(anomalous).predicted()
    precision = true / np.maximum(levels.predicted(), 1)
    return float(np.max(2 * recall * precision / (recall + precision + _EPS)))
