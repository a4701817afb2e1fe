"""What the page shows, as plain arrays and small records.

A `ReportData` holds the results of a detection; `write_report` turns it into one HTML file. It does
not depend on the detector, so a report can be made from any scores and events.

The time axis is a piecewise linear function with few knots: a table sampled every minute needs two
points, one with three gaps needs eight; only a table of irregular stamps needs many, and those are
thinned beyond a limit (the ends of gaps never are).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import (
    ANOMALY,
    CONDITIONS,
    NEAR_MISS,
    NO_DATA,
    Event,
    reading_words,
)
from vace_ad.errors import InputError
from vace_ad.frames.segments import Rules, runs_above
from vace_ad.frames.time import duration_words
from vace_ad.frames.timestamps import offset_words
from vace_ad.wording import plural

KINDS = (ANOMALY, CONDITIONS, NO_DATA, NEAR_MISS)
LIMITS = 40  # that are tried above the limit, and as many below
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MIN_CONTEXT = 64  # rows shown on either side of even the shortest event
CONTEXT = 1.0  # rows shown on either side, as a multiple of the event's own length


class Curve(NamedTuple):
    """What was expected of a channel, and how surprising its values are, (n,) each."""

    lower: NDArray[np.floating]  # of the expected range; NaN where nothing was expected
    upper: NDArray[np.floating]
    nats: NDArray[np.floating]  # evidence of its cells


@dataclass(frozen=True)
class WhatIf:
    """The number of events at another limit."""

    shift: float  # added to the limit
    events: int  # anomalies there would be
    words: str = ""  # what to expect on normal data, e.g. "about 3 false alarms a week"


def what_if(
    evidence: NDArray[np.float64],
    limit: float | NDArray[np.float64],
    rules: Rules,
    events: NDArray[np.intp],
    *,
    first: int = 0,
) -> list[WhatIf]:
    """How many events higher and lower limits would give, by rising shift.

    `events` (k, 2) are the rows [start, end) of those that there are: a higher limit keeps those
    whose evidence rises above it, a lower one adds stretches away from them.
    """
    above = np.asarray(evidence, dtype=np.float64) - limit  # (n,)
    above[:first] = np.nan
    known = above[np.isfinite(above)]
    if not len(known):
        return []
    low, high = min(float(np.median(known)), 0.0), max(float(known.max()), 0.0)
    if not high > low:
        return []
    peaks = [float(np.nanmax(above[a:b], initial=0.0)) for a, b in events.tolist()]
    taken = np.zeros(len(above) + 1, np.intp)  # rows of events before each
    for start, end in events.tolist():
        taken[start + 1 : end + 1] += 1
    taken = np.cumsum(taken)

    def count(shift: float) -> int:
        if shift >= 0:
            return sum(peak > shift for peak in peaks) if shift else len(peaks)
        start, end = runs_above(above, shift, rules).T
        return len(peaks) + int((taken[start] == taken[end]).sum())

    closer = np.linspace(0, 1, LIMITS) ** 2  # to the limit the closer, where most depends
    shifts = np.unique([*(low * closer), *(high * closer)])
    return [WhatIf(shift, count(shift), "") for shift in shifts.tolist()]


@dataclass(frozen=True)
class ReportData:
    """Everything on the page. Only channels, values, scores and threshold are required."""

    title: str
    channels: Sequence[str]  # D names, any text
    values: NDArray[np.floating]  # (n, D), NaN where missing
    scores: NDArray[np.floating]  # (n,), high = anomalous, NaN where no patch covers the row
    threshold: float | NDArray[np.floating]  # or one a row, (n,)
    time: NDArray[np.datetime64] | None = None  # (n,) never decreasing; in UTC with `offsets`
    time_zone: str | None = None  # a label beside the axis, e.g. "Europe/Berlin"
    offsets: Sequence[tuple[int, int]] = ()  # from which row on clocks are how many minutes ahead
    signals: Mapping[str, NDArray[np.floating]] = field(default_factory=dict)  # name -> (n,)
    signal_words: Mapping[str, str] = field(default_factory=dict)  # name -> what it watches
    expected: Mapping[str, Curve] = field(default_factory=dict)  # channel -> around its values
    units: Mapping[str, str] = field(default_factory=dict)  # channel -> unit, where known
    events: Sequence[Event] = ()  # in order of start
    near_misses: Sequence[Event] = ()  # strong stretches below the limit, by start
    what_if: Sequence[WhatIf] = ()  # by rising shift
    trust: Sequence[str] = ()  # whether the detector can be trusted here, in sentences
    training: tuple[int, int] | None = None  # rows [start, end) that the fit saw, if any here
    idle: Sequence[tuple[str, int, int]] = ()  # why, and rows [start, end) that were not judged
    trajectory: NDArray[np.floating] | None = None  # (k, 2), the embedding in two dimensions
    trajectory_rows: NDArray[np.integer] | None = None  # (k,), the row each point stands for
    geometry: Mapping[str, float] = field(default_factory=dict)  # diagnostic -> value
    verdict: str = ""  # the geometry in one sentence
    alarm_words: str = ""  # what the limit means, e.g. "about one false alarm a week"
    notes: Sequence[str] = ()  # columns dropped, irregular steps, contaminated training, ...
    facts: Mapping[str, str] = field(default_factory=dict)  # seeds, versions, checksum, seconds
    command: str = ""  # what to type to run it again

    def __post_init__(self) -> None:
        """Refuse inconsistent shapes and rows."""
        n = self._check_table()
        self._check_events(n)
        self._check_trajectory(n)

    def label(self, channel: str) -> str:
        """A channel with its unit, e.g. "flow [l/s]"."""
        unit = self.units.get(channel)
        return f"{channel} [{unit}]" if unit else channel

    @property
    def n_rows(self) -> int:
        """How many rows the table has."""
        return len(self.values)

    @property
    def level(self) -> float:
        """The threshold as one number: the middle one where there is one a row."""
        known = np.ravel(np.asarray(self.threshold, dtype=np.float64))
        known = known[np.isfinite(known)]
        return float(np.median(known)) if len(known) else float("nan")

    @property
    def ends(self) -> tuple[float, float]:
        """The threshold of the first row that has one, and of the last."""
        return first_and_last(self.threshold) or (float("nan"), float("nan"))

    @property
    def line(self) -> NDArray[np.floating] | None:
        """The threshold of each row (n,), or None where it is the same for all."""
        line = np.asarray(self.threshold)
        if line.ndim == 0 or not np.isfinite(line).any() or np.ptp(line[np.isfinite(line)]) == 0:
            return None
        return line

    @cached_property
    def clock(self) -> TimeAxis:
        """Where each row lies on the time axis."""
        return make_clock(self.time, self.n_rows)

    def stamp(self, row: int) -> str:
        """When a row was, e.g. "14 Mar 2026 03:20+01:00", as finely as the table is sampled."""
        if self.time is None:
            return f"row {row:,}"
        ahead = max((one for one in self.offsets if one[0] <= row), default=None)
        minutes, offset = (0, "") if ahead is None else (ahead[1], offset_words(ahead[1]))
        when = self.time[row].astype("datetime64[ms]").item() + timedelta(minutes=minutes)
        text, step = f"{when.day} {MONTHS[when.month - 1]} {when.year}", self.clock.step
        if step >= 86_400_000 and when.hour == when.minute == when.second == 0:
            return text
        text += f"{when: %H:%M}"
        if step < 60_000 or when.second:
            text += f"{when::%S}"
        return text + (f".{when.microsecond // 1000:03d}" if step < 100 else "") + offset

    def length(self, event: Event) -> str:
        """How long an event lasts: in time where there is time, else in rows."""
        rows = event.end - event.start
        if self.time is None:
            return plural(rows, "row")
        at = self.time.astype("datetime64[ns]")
        if rows == 0:  # a gap: from the last row before to the first after
            before = max(0, event.start - 1)
            after = min(event.start, len(at) - 1)
            return duration_words(float(at[after] - at[before]))
        return duration_words(float(at[event.end - 1] - at[event.start]) + 1e6 * self.clock.step)

    def readings(self, event: Event) -> dict[str, str]:
        """Each suspect at the peak in words: "power 49.6 kW, expected 31.2 to 35.1"."""
        return {
            one.channel: reading_words(one, self.units.get(one.channel, ""))
            for one in event.readings
            if all(map(math.isfinite, one[1:]))
        }

    def _check_table(self) -> int:
        if self.values.ndim != 2 or 0 in self.values.shape:
            raise InputError(
                f"values has shape {self.values.shape}; a report needs (rows, channels), both > 0"
            )
        n = len(self.values)
        if len(self.channels) != self.values.shape[1]:
            raise InputError(
                f"{len(self.channels)} channel names for {self.values.shape[1]} columns of "
                "values; give one each"
            )
        columns = {"scores": self.scores, "time": self.time, **self.signals}
        for name, curve in self.expected.items():
            columns |= {f"{name} {part}": line for part, line in curve._asdict().items()}
        for name, column in columns.items():
            if column is not None and column.shape != (n,):
                raise InputError(f"{name!r} has shape {column.shape}; expected ({n},), as values")
        if np.shape(self.threshold) not in ((), (n,)):
            raise InputError(
                f"threshold has shape {np.shape(self.threshold)}; give one number or ({n},)"
            )
        if self.time is not None:
            stamps = self.time.astype("datetime64[ns]").view(np.int64)
            if np.isnat(self.time).any() or bool((np.diff(stamps) < 0).any()):
                raise InputError(
                    "time has missing stamps or goes backwards; sort the rows, or pass time=None"
                )
        return n

    def _check_events(self, n: int) -> None:
        known = set(self.channels)
        for name in (*self.expected, *self.units):
            if name not in known:
                raise InputError(
                    f"{name!r} has a curve or a unit and is not among the table's {len(known)} "
                    "channels; use the names in channels"
                )
        for event in (*self.events, *self.near_misses):
            blamed = [*(name for name, _ in event.shares), *(one.channel for one in event.readings)]
            foreign = [name for name in blamed if name not in known]
            if foreign:
                raise InputError(
                    f"an event blames {foreign[0]!r}, which is not among the table's "
                    f"{len(known)} channels; use the names in channels"
                )
            gap = event.kind == NO_DATA and event.start == event.end
            if event.kind not in KINDS:
                raise InputError(f"event kind {event.kind!r} is not one of {KINDS}")
            if not (0 <= event.start <= event.end <= n) or (event.start == event.end and not gap):
                raise InputError(
                    f"event rows [{event.start}, {event.end}) do not lie in the table's {n} rows"
                )
            if not gap and not event.start <= event.peak < event.end:
                raise InputError(
                    f"the peak, row {event.peak}, lies outside its event "
                    f"[{event.start}, {event.end})"
                )
        if self.training is not None:
            start, end = self.training
            if not 0 <= start < end <= n:
                raise InputError(
                    f"training rows [{start}, {end}) are no part of the table's {n} rows; pass "
                    "training=None where the detector learned from another table"
                )

    def _check_trajectory(self, n: int) -> None:
        points, rows = self.trajectory, self.trajectory_rows
        if points is None and rows is None:
            return
        if points is None or rows is None or points.shape != (len(rows), 2):
            raise InputError(
                "trajectory must be (k, 2) and trajectory_rows (k,), both given or neither"
            )
        if len(rows) and not (rows.min() >= 0 and rows.max() < n):
            raise InputError(f"trajectory_rows point outside the table's {n} rows")


def first_and_last(line: float | NDArray[np.floating]) -> tuple[float, float] | None:
    """The first and the last finite value of a line; None where there is none."""
    known = np.ravel(np.asarray(line, dtype=np.float64))
    known = known[np.isfinite(known)]
    return (float(known[0]), float(known[-1])) if len(known) else None


def surroundings(event: Event, n_rows: int) -> tuple[int, int]:
    """Return the rows [start, end) of an event with its before and after."""
    margin = max(MIN_CONTEXT, round(CONTEXT * (event.end - event.start)))
    return max(0, event.start - margin), min(n_rows, event.end + margin)


MAX_KNOTS = 100_000
GAP_STEPS = 10.0  # a step this many times the median one breaks the curve


@dataclass(frozen=True)
class TimeAxis:
    """Row to position on the axis: milliseconds after the first row, or the row itself."""

    rows: NDArray[np.int64]  # (k,) increasing
    at: NDArray[np.float64]  # (k,) never decreasing
    origin_ms: float | None  # the first row in ms since 1970, None where there is no time
    step: float  # the median distance of two rows
    gap: float  # a distance above this is a gap


def make_clock(time: NDArray[np.datetime64] | None, n_rows: int) -> TimeAxis:
    """Return the axis of a table with these time stamps (n,), or of its row numbers."""
    if time is None:
        rows = np.unique(np.array([0, n_rows - 1], dtype=np.int64))
        return TimeAxis(rows, rows.astype(np.float64), None, 1.0, GAP_STEPS)
    stamps = time.astype("datetime64[ns]").view(np.int64)  # (n,)
    at = (stamps - stamps[0]) / 1e6  # (n,) ms
    steps = np.diff(at)
    positive = steps[steps > 0]
    step = float(np.median(positive)) if len(positive) else 1.0
    gap = GAP_STEPS * step
    rows = _knots(np.diff(stamps), steps > gap)
    return TimeAxis(rows, at[rows], float(stamps[0]) / 1e6, step, gap)


def _knots(steps: NDArray[np.int64], is_gap: NDArray[np.bool_]) -> NDArray[np.int64]:
    n_rows = len(steps) + 1
    bends = np.flatnonzero(np.diff(steps)) + 1  # rows where the step changes
    thin = bends[:: max(1, -(-len(bends) // MAX_KNOTS))]
    gaps = np.flatnonzero(is_gap)
    ends = np.array([0, n_rows - 1])
    return np.unique(np.concatenate([ends, thin, gaps, gaps + 1])).astype(np.int64)
