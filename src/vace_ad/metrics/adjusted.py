"""Measures that credit a whole event for one predicted row: PA-F1 and Event-based-F1.

Both follow TSB-AD 1.5 to the row, including how it treats the ends of a series.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.metrics._order import Levels
from vace_ad.metrics.events import Events, reduce_events

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
