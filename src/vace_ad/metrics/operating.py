"""Operating measures: quality of the alarms at a budget, and of 0/1 predictions (`operational`).

A labelled stretch is found if an event lies within 48 rows of it. An event near no labelled
stretch is a false alarm. Rows more than 48 rows from any label are normal; those inside events are
counted, so that one endless event wins nothing. Onset and length are compared where event and
stretch match one to one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vace_ad.errors import InputError
from vace_ad.metrics import _check
from vace_ad.metrics.events import find_events

TOLERANCE = 48  # rows by which an event may miss a labelled stretch
EARLY = 8  # rows before its stretch from which on an event begins too early
PLACES = (1, 3, 5)  # channels named first, among which a true one counts as a hit

Hits = tuple[bool, ...]  # one a place of PLACES
_DAY = 86_400.0  # seconds


@dataclass(frozen=True)
class Operating:
    """Counts of one or more series; `+` adds them up, `summary` makes measures of them."""

    series: int  # that were counted
    events: int  # labelled stretches
    found: int  # of them, with an event near
    false_alarms: int  # events near no labelled stretch
    allowed: float | None  # false alarms that the budget allows; None for a budget without a rate
    normal_rows: int  # far from any label
    inside_rows: int  # of them, inside events
    onsets: tuple[int, ...] = ()  # start of the event minus start of the stretch, in rows
    lengths: tuple[float, ...] = ()  # length of the event over length of the stretch
    live: int = 0  # labelled stretches that a live stream was tried on
    delays: tuple[int, ...] = ()  # rows from the start of a stretch to its alarm, live
    blamed: tuple[Hits, ...] = ()  # for each explained stretch: a true channel in the first 1, 3, 5

    def __add__(self, other: Operating) -> Operating:
        """Counts of both."""
        sums: dict[str, Any] = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name != "allowed"
        }
        known = self.allowed is not None and other.allowed is not None
        return Operating(**sums, allowed=self.allowed + other.allowed if known else None)  # type: ignore[operator]

    def summary(self) -> dict[str, float | None]:
        """The measures; None where nothing was there to measure."""
        low, middle, high = _quantiles(self.lengths, (0.25, 0.5, 0.75))
        early = np.mean(np.array(self.onsets) < -EARLY) if self.onsets else None
        hits = np.mean(self.blamed, axis=0).tolist() if self.blamed else [None] * len(PLACES)
        return {
            "events": self.events,
            "found": self.found,
            "false_alarms": self.false_alarms,
            "allowed": self.allowed,
            "normal_rows_in_events": self.inside_rows / max(self.normal_rows, 1),
            "onset_median": _quantiles(self.onsets, (0.5,))[0],
            "onset_early_share": None if early is None else float(early),
            "length_low": low,
            "length_median": middle,
            "length_high": high,
            "live_events": self.live if self.live else None,
            "live_found": len(self.delays) if self.live else None,
            "delay_median": _quantiles(self.delays, (0.5,))[0],
            "delay_worst": float(max(self.delays)) if self.delays else None,
            **{f"blame_{k}": hit for k, hit in zip(PLACES, hits, strict=True)},
            "blamed": len(self.blamed) if self.blamed else None,
        }

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The reverse of `to_plain`; other names are passed over."""
        own = {each.name: plain[each.name] for each in fields(cls) if each.name in plain}
        for name in ("onsets", "lengths", "delays"):
            own[name] = tuple(own.get(name, ()))
        return cls(**{**own, "blamed": tuple(tuple(hits) for hits in own.get("blamed", ()))})


def operating(
    labels: ArrayLike,
    events: Iterable[tuple[int, int]],
    *,
    rate: float | None = None,
    opened: Iterable[int] | None = None,
    blamed: Iterable[Hits] = (),
    tolerance: int = TOLERANCE,
) -> Operating:
    """Compare events with the labels of one series.

    Parameters
    ----------
    labels
        0/1 for each row, 1 = anomalous.
    events
        Row ranges [start, end) that were reported.
    rate
        False alarms a row that the budget allows.
    opened
        Rows at which a live stream opened an alarm, from rows up to then alone. The delay of a
        stretch is that of the first one from `tolerance` rows before its start to as many after
        its end; 0 for one that came before the start. An alarm that is still open from farther
        back says nothing new, so it does not count.
    blamed
        Hits of explained stretches, from :func:`blame_hits`.
    tolerance
        Rows by which an event may miss a stretch.

    Examples
    --------
    >>> from vace_ad.metrics import operating
    >>> labels = [0] * 100 + [1] * 20 + [0] * 280
    >>> counted = operating(labels, [(104, 124), (300, 310)], rate=1e-3, opened=[109, 300])
    >>> counted.found, counted.false_alarms, counted.allowed
    (1, 1, 0.4)
    >>> counted.onsets, counted.delays
    ((4,), (9,))
    """
    anomalous = _check.binary(labels, "labels")
    told = _ranges(events, anomalous.size)  # (m, 2)
    stretches = np.stack(find_events(anomalous), axis=1)  # (k, 2)
    near = _near(stretches, told, tolerance)  # (k, m)
    normal, inside = np.ones(anomalous.size, np.bool_), np.zeros(anomalous.size, np.bool_)
    for start, end in stretches.tolist():
        normal[max(0, start - tolerance) : end + tolerance] = False
    for start, end in told.tolist():
        inside[start:end] = True
    single = near & (near.sum(axis=1) == 1)[:, None] & (near.sum(axis=0) == 1)
    pairs = [(told[j].tolist(), stretches[i].tolist()) for i, j in np.argwhere(single)]
    return Operating(
        series=1,
        events=len(stretches),
        found=int(near.any(axis=1).sum()),
        false_alarms=int((~near.any(axis=0)).sum()),
        allowed=None if rate is None else rate * anomalous.size,
        normal_rows=int(normal.sum()),
        inside_rows=int((normal & inside).sum()),
        onsets=tuple(event[0] - stretch[0] for event, stretch in pairs),
        lengths=tuple((event[1] - event[0]) / (true[1] - true[0]) for event, true in pairs),
        live=0 if opened is None else len(stretches),
        delays=() if opened is None else _delays(stretches, opened, tolerance),
        blamed=tuple(blamed),
    )


def blame_hits(named: Sequence[Any], true: Collection[Any]) -> Hits:
    """Whether a true channel is among the first 1, 3 and 5 that were named."""
    if not true:
        raise InputError("no true channel was given; leave a range without true channels out")
    return tuple(any(channel in true for channel in named[:k]) for k in PLACES)


def _near(
    stretches: NDArray[np.intp], events: NDArray[np.intp], tolerance: int
) -> NDArray[np.bool_]:
    """Whether stretch i and event j lie within so many rows of each other, (k, m)."""
    start, end = stretches[:, :1], stretches[:, 1:]
    return np.asarray((events[:, 0] < end + tolerance) & (events[:, 1] > start - tolerance))


def _delays(stretches: NDArray[np.intp], opened: Iterable[int], tolerance: int) -> tuple[int, ...]:
    """Rows from the start of each stretch that was noticed live to its first alarm."""
    rows = np.sort(np.array(list(opened), dtype=np.intp))
    delays = []
    for start, end in stretches.tolist():
        near = rows[(rows >= start - tolerance) & (rows < end + tolerance)]
        if near.size:
            delays.append(max(0, int(near[0]) - start))
    return tuple(delays)


def _ranges(events: Iterable[tuple[int, int]], n_rows: int) -> NDArray[np.intp]:
    """Row ranges as an array (m, 2), or what is wrong with them."""
    ranges = np.array(list(events), dtype=np.intp).reshape(-1, 2)
    wrong = (ranges[:, 0] < 0) | (ranges[:, 1] > n_rows) | (ranges[:, 0] >= ranges[:, 1])
    if wrong.any():
        start, end = ranges[wrong][0].tolist()
        raise InputError(
            f"got an event of rows {start} to {end} and {n_rows} labels; expected ranges "
            "[start, end) of these rows: give labels and events of the same table"
        )
    return ranges


def _quantiles(values: Sequence[float], shares: Sequence[float]) -> list[float | None]:
    if not values:
        return [None for _ in shares]
    return [float(value) for value in np.quantile(values, shares)]


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
