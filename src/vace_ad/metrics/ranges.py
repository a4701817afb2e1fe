r"""R-based-F1: range-based precision and recall (Tatbul et al., 2018), as TSB-AD sets them.

For an event :math:`R` of :math:`|R|` rows that holds :math:`c` predicted rows in :math:`r` runs,

.. math:: recall(R) = 0.2 \cdot [c > 0] + 0.8 \cdot \frac{c}{|R|} \cdot \frac{1}{r},

averaged over the events. Precision is the same with events and predicted runs changing places,
without the first term. A prediction of every row counts as no run at all in TSB-AD, so its
precision is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.metrics._order import Levels, predicted_runs, spread
from vace_ad.metrics.events import Events

CELLS = 2**20  # of a table events × thresholds that are held at a time
_EXISTENCE = 0.2  # weight of finding an event at all


def range_f1(anomalous: NDArray[np.bool_], events: Events, levels: Levels) -> float:
    """R-based-F1 at the best of the thresholds."""
    hits = levels.of(anomalous).predicted()  # (K,)
    some = (hits > 0) & (levels.predicted() < anomalous.size)
    precision = _precision(anomalous, events, levels)[some]
    recall = _recall(anomalous, events, levels)[some]
    return float(np.max(2 * precision * recall / (precision + recall), initial=0))


def _precision(anomalous: NDArray[np.bool_], events: Events, levels: Levels) -> NDArray[np.float64]:
    """Mean precision of the predicted runs at each threshold, 0 where there is none. (K,)."""
    runs = predicted_runs(levels)
    hits, begun, over = (np.zeros(anomalous.size + 1, dtype=np.intp) for _ in range(3))
    hits[1:] = np.cumsum(anomalous)  # anomalous rows before a row
    begun[events.starts + 1] = 1
    begun = np.cumsum(begun)  # events that start before a row
    over[events.stops] = 1
    over = np.cumsum(over)  # events that stop before a row

    covered = hits[runs.stops] - hits[runs.starts]
    met = begun[runs.stops] - over[runs.starts]  # events that share a row with the run
    values = covered / (runs.stops - runs.starts) / np.maximum(met, 1)
    number = spread(runs, levels.thresholds)
    mean: NDArray[np.float64] = spread(runs, levels.thresholds, values) / np.maximum(number, 1)
    return mean


def _recall(anomalous: NDArray[np.bool_], events: Events, levels: Levels) -> NDArray[np.float64]:
    """Mean recall of the events at each threshold. (K,)."""
    rows = levels.rows[anomalous]  # (P,) levels inside events, one event after the other
    lengths = events.stops - events.starts
    heads = np.cumsum(lengths) - lengths  # (n_events,) first row of each event among them
    previous = np.append(0, rows[:-1])
    previous[heads] = 0
    owner = np.repeat(np.arange(lengths.size), lengths)

    reward = np.zeros(levels.thresholds)
    step = max(1, CELLS // (levels.thresholds + 1))
    for begin in range(0, lengths.size, step):
        end = min(begin + step, lengths.size)
        part = slice(heads[begin], heads[end - 1] + lengths[end - 1])
        counts = _run_counts(
            owner[part] - begin, previous[part], rows[part], end - begin, levels.thresholds
        )
        covered, runs = counts  # (events in part, K) each
        share = covered / lengths[begin:end, None] / np.maximum(runs, 1)
        reward += (_EXISTENCE * (covered > 0) + (1 - _EXISTENCE) * share).sum(axis=0)
    return reward / lengths.size


def _run_counts(
    owner: NDArray[np.intp],
    previous: NDArray[np.intp],
    rows: NDArray[np.intp],
    events: int,
    count: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Count the predicted rows and their runs in each event. Two tables (events, K).

    A run starts at a row at the thresholds that the row passes and the one before it does not.
    """
    shape = (events, count + 1)
    cell = owner * shape[1]
    levels = np.bincount(cell + rows, minlength=events * shape[1]).reshape(shape)
    covered = np.cumsum(levels[:, :0:-1], axis=1)[:, ::-1]
    rise = rows > previous
    opened = np.bincount(cell[rise] + previous[rise], minlength=events * shape[1])
    closed = np.bincount(cell[rise] + rows[rise], minlength=events * shape[1])
    runs = np.cumsum((opened - closed).reshape(shape), axis=1)[:, :count]
    return covered, runs
