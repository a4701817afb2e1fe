"""Operational measures: events found, delays and false alarms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vace_ad.errors import InputError
from vace_ad.metrics import _check
from vace_ad.metrics.events import find_events

_DAY = 86_400.0  # seconds


@dataclass(frozen=True)
class Operational:
    """What 0/1 predictions mean in operation.

    An *event* is an unbroken run of rows labelled 1, an *alarm* an unbroken run of predicted rows.
    """

    events: int  # labelled ones
    events_found: int  # with at least one predicted row
    events_missed: int
    alarms: int
    false_alarms: int  # alarms that share no row with any event
    false_alarms_per_day: float | None  # of normal rows; None without them or `step_seconds`
    delays: tuple[int, ...]  # rows to the first predicted one of each found event; 0 if before
    median_delay_seconds: float | None  # of found events: read it beside `events_missed`
    worst_delay_seconds: float | None


def operational(
    labels: ArrayLike, predictions: ArrayLike, step_seconds: float | None = None
) -> Operational:
    """Count events found and missed, false alarms and delays; see :class:`Operational`.

    Parameters
    ----------
    labels
        0/1 for each row, 1 = anomalous. All may be 0: then every alarm is false.
    predictions
        0/1 for each row.
    step_seconds
        The time from one row to the next.

    Examples
    --------
    >>> from vace_ad.metrics import operational
    >>> result = operational([0, 0, 1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 1, 0, 0, 0], step_seconds=3600)
    >>> result.events_found, result.false_alarms, result.median_delay_seconds
    (1, 1, 3600.0)
    """
    anomalous = _check.binary(labels, "labels")
    predicted = _check.binary(predictions, "predictions")
    _check.same_length(anomalous, predicted, "predictions")
    if step_seconds is not None and not 0 < step_seconds < float("inf"):
        raise InputError(
            f"step_seconds is {step_seconds!r}; expected the positive number of seconds from one "
            "row to the next"
        )

    events, alarms = find_events(anomalous), find_events(predicted)
    before = np.append(0, np.cumsum(anomalous))  # anomalous rows before a row
    false = int(np.count_nonzero(before[alarms.stops] == before[alarms.starts]))
    alarming = np.append(np.flatnonzero(predicted), anomalous.size)
    first = alarming[np.searchsorted(alarming, events.starts)]  # predicted row from the start on
    delays = (first - events.starts)[first < events.stops]  # (n_found,) rows

    per_day = median = worst = None
    if step_seconds is not None:
        normal_days = int(np.count_nonzero(~anomalous)) * step_seconds / _DAY
        per_day = false / normal_days if normal_days else None
        if delays.size:
            median = float(np.median(delays)) * step_seconds
            worst = float(delays.max()) * step_seconds
    return Operational(
        events=events.starts.size,
        events_found=delays.size,
        events_missed=events.starts.size - delays.size,
        alarms=alarms.starts.size,
        false_alarms=false,
        false_alarms_per_day=per_day,
        delays=tuple(delays.tolist()),
        median_delay_seconds=median,
        worst_delay_seconds=worst,
    )
