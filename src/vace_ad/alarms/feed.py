"""Alarms of a stream: what its rows open, update and resolve, in the user's own rows and times.

There is one way from rows to events, for a table and for a live stream alike. A budget of alarms is
kept by the scan of all evidence; a threshold or a share of rows that a person gave is a plain limit
of the score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.budget import Budget
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.conditions import LINGER, Conditions
from vace_ad.alarms.constants import MOST_MARGIN
from vace_ad.alarms.events import ACCEPTED, ANOMALY, CONDITIONS, Event, Reading, groups_of
from vace_ad.alarms.pattern import BEFORE, Pattern
from vace_ad.alarms.runs import Rules
from vace_ad.alarms.scan import Line, describe
from vace_ad.alarms.severity import probability, severity
from vace_ad.alarms.suppression import Stretch
from vace_ad.alarms.suspects import DriftRange
from vace_ad.alarms.tracker import KEPT, Told, Tracked, What
from vace_ad.alarms.watch import AlarmModel, AlarmStream
from vace_ad.config import VACEConfig
from vace_ad.frames.idle import IdleRule
from vace_ad.frames.sampling import StepRule
from vace_ad.frames.segments import Piece
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.row_buffer import RowBuffer

Array = NDArray[np.float64]

LONGEST = 4_096  # rows of an open event that are kept, to recognise what looks like it
NAMED = 0.01  # share of the suspicion from which on a channel is named
READ = 6  # suspects whose values are told


class Learned(Protocol):
    """What alarms need of a model."""

    @property
    def config(self) -> VACEConfig:
        """The settings."""

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels."""

    @property
    def normal(self) -> Normal:
        """Units of the channels, and how they depend on each other."""

    @property
    def drift_range(self) -> DriftRange:
        """How far channels move in training."""

    @property
    def alarm(self) -> AlarmModel:
        """The cells, and how surprising they are."""

    @property
    def calibration(self) -> Calibration:
        """How scores are distributed in normal operation."""

    @property
    def step(self) -> int | None:
        """Nanoseconds between training rows."""

    @property
    def step_rule(self) -> StepRule:
        """How times cut a series into stretches."""

    @property
    def watched(self) -> NDArray[np.bool_]:
        """Which channels are no context, (n_channels,)."""

    @property
    def conditions(self) -> Conditions:
        """The range of every channel in training."""

    @property
    def idle(self) -> IdleRule:
        """Which rows are not judged."""


@dataclass(frozen=True)
class Change:
    """What became of an event."""

    what: What | Literal["accepted"]  # accepted: no alarm, for the record
    event: Event
    # of an event that has ended: how its channels left their past
    pattern: Pattern | None = field(default=None, compare=False)
    row: int | None = field(default=None, compare=False)  # that brought it; None: no single one


class Taken(NamedTuple):
    """What decided rows gave."""

    changes: tuple[Change, ...]
    evidence: Array  # (n,), highest evidence over its limit; NaN for rows without any
    surprise: Array  # (n,), nats of the most surprising cell; NaN the same


class Latest(NamedTuple):
    """The last rows of a stream as people look at them."""

    times: NDArray[np.datetime64]  # (n,)
    evidence: Array  # (n,), over its limit: above 1 is an alarm; NaN: none
    values: Array  # (n, n_channels)
    lower: Array  # (n, n_channels), of what was expected
    upper: Array


class AlarmFeed:
    """The events of a stream of rows that are complete, in order."""

    def __init__(
        self, model: Learned, budget: Budget, rules: Rules | None, step: int | None
    ) -> None:
        self._model, self._rules = model, rules or Rules()
        rate = budget.rate(model.step or step)
        assert rate is not None  # thresholds of scores have a feed of their own
        self.rate = rate
        longest = model.config.new_normal_after or None
        follow = model.config.adapt
        self._stream = AlarmStream(model.alarm, rate, longest, self._rules.join, follow)
        self._n = 0  # rows decided, those that were put in for missing ones included
        self._at = -1  # the one that is spoken of
        self._missing = 0  # of them, those that were put in
        self._offsets: list[tuple[int, int]] = [(0, 0)]  # (row, rows put in before it)
        self._queue = np.empty((0, 2))  # of rows not decided: whether it came, what divides it
        self._times_queue = np.empty(0, "datetime64[ns]")
        self._decided = np.empty(0, np.intp)  # rows decided when each of the newest had come
        self._times = RowBuffer(1, "datetime64[ns]")  # of the last KEPT rows
        self._surprise = RowBuffer(2)  # of the most surprising cell; evidence over its limit
        self._rows = RowBuffer(len(model.channels))  # as they came, for patterns
        # How far below each of them the expected range begins, and how far above it ends.
        self._range = RowBuffer(2 * len(model.channels), "float32")
        self._open: dict[int, Event] = {}  # by the internal row that opened it
        self._hushed: set[int] = set()
        self._quiet_until = -1
        self._wait = model.idle.run_down
        self._held = np.empty((0, len(model.channels)))  # rows that may turn out a run-down
        self._held_scores = np.empty(0)

    # -------------------------------------------------------------------- rows

    def expect(
        self,
        came: NDArray[np.bool_],
        times: NDArray[np.datetime64] | None,
        bear: Array | None,
        waiting: NDArray[np.intp] | None = None,
    ) -> None:
        """Rows that are on their way to be decided; `times` and `bear` of those that came.

        `waiting` (n,) tells how many were not decided when each of them had come.
        """
        n = len(came)
        arrived = self._n + len(self._queue) + np.arange(1, n + 1)
        self._decided = arrived if waiting is None else arrived - waiting
        for number in arrived[~came].tolist():
            self._missing += 1
            self._offsets.append((number, self._missing))
        queue = np.ones((n, 2))
        queue[:, 0] = came
        if bear is not None:
            queue[came, 1] = bear
        stamps = np.full(n, np.datetime64("NaT", "ns"))
        if times is not None:
            stamps[came] = times
        self._queue = queue if not len(self._queue) else np.concatenate([self._queue, queue])
        self._times_queue = np.concatenate([self._times_queue, stamps])

    def take(self, piece: Piece, scores: Array | None = None) -> Taken:
        """What comes next, with provisional scores (n,) of its rows.

        Rows wait until it is known that no standstill follows them.
        """
        if piece.rows is None:
            first = self._n + len(self._held)
            by = self._brought(first) if piece.n else first  # a cut: the row after it
            if piece.off or not len(self._held):
                n = piece.n + len(self._held)
                self._held, self._held_scores = self._held[:0], self._held_scores[:0]
                return self._judge(None, n, by=by)
            return _joined(self._let_go(by), self._judge(None, piece.n, by=by))
        if not self._wait:
            return self._judge(piece.rows, piece.n, scores)
        rows = np.concatenate([self._held, piece.rows])
        new = np.full(piece.n, np.nan) if scores is None else scores
        scores = np.concatenate([self._held_scores, new])
        ready = max(len(rows) - self._wait, 0)
        self._held, self._held_scores = rows[ready:], scores[ready:]
        return self._judge(rows[:ready], ready, scores[:ready])

    def _let_go(self, by: int) -> Taken:
        """Judge the rows that wait: row `by` tells that no standstill follows them."""
        rows, self._held = self._held, self._held[:0]
        scores, self._held_scores = self._held_scores, self._held_scores[:0]
        return self._judge(rows, len(rows), scores, by=by)

    def _judge(
        self, rows: Array | None, n: int, scores: Array | None = None, *, by: int | None = None
    ) -> Taken:
        """Rows (n, n_channels) that are decided, with their provisional scores (n,).

        None: n rows without evidence, or a cut. `by` is the row that brought them all.
        """
        queue, self._queue = self._queue[:n], self._queue[n:]
        times, self._times_queue = self._times_queue[:n], self._times_queue[n:]
        came = queue[:, 0] > 0
        if rows is None:
            told = self._stream.skip(n)
            evidence = surprise = np.full(n, np.nan)
            rows = np.full((n, len(self._model.channels)), np.nan)
            within = np.tile(rows, 2)
        else:
            bear = queue[:, 1]
            judged = self._stream.add(rows, scores, None if (bear == 1).all() else bear)
            told, evidence, surprise, expected = judged
            within = np.concatenate([rows - expected.lower, expected.upper - rows], axis=1)
        for buffer, new in (
            (self._times, times[:, None]),
            (self._surprise, np.stack([surprise, evidence], axis=1)),
            (self._rows, rows),
            (self._range, within),
        ):
            buffer.keep(KEPT)
            buffer.add(new)
        self._n += n
        self._offsets = self._recent_offsets()
        changes = []
        for each in told:
            row = self._brought(each.row + self._wait) if by is None else by
            changes += self._changes(each, self._number(row))
        return Taken(tuple(changes), evidence[came], surprise[came])

    def finish(self) -> Taken:
        """Judge what waits, and resolve what is open at the end."""
        by = self._n + len(self._held) - 1
        last = self._let_go(by)
        self._at = by
        told = self._stream.tracker.finish()
        changes = [change for each in told for change in self._changes(each, self._number(by))]
        return last._replace(changes=(*last.changes, *changes))

    def restart(self, new_level: bool = False) -> Taken:
        """Judge what follows afresh: limits and events start anew, rows go on.

        With `new_level`, the level of the last rows is normal.
        """
        last = self._let_go(self._n)
        self._stream.restart(new_level)
        self._open, self._hushed = {}, set()
        return last._replace(changes=())

    # ------------------------------------------------------------------ events

    def _brought(self, row: int) -> int:
        """The row with which a row was decided: later ones tell how long its gap is."""
        newest = self._n + len(self._queue) - 1
        by = int(np.searchsorted(self._decided, row, side="right"))
        return min(newest + 1 - len(self._decided) + by, newest)

    def _changes(self, told: Told, row: int) -> list[Change]:
        """What is said of a change that a row brought, under the rules and what people said."""
        key, self._at = told.event.alarm, told.row
        known = self._open.get(key)
        event = self._event(told, known)
        if known is None:
            if event.start < self._quiet_until:
                return []
            if event.rows < self._rules.min_length:
                return []
        found = []
        if known is None and told.what != "open":
            found.append(Change("open", event, row=row))
        self._open[key] = event
        if told.what != "resolve":
            if told.what == "open" or known is not None:
                pattern = self._pattern(event) if told.what == "rest" else None
                found.append(Change(told.what, event, pattern, row))
        else:
            del self._open[key]
            self._quiet_until = event.end + self._rules.cooldown if self._rules.cooldown else -1
            pattern = self._pattern(event)
            if key in self._hushed:
                self._hushed.discard(key)
                return [Change("accepted", replace(event, kind=ACCEPTED), pattern, row)]
            found.append(Change("resolve", event, pattern, row))
        return [] if key in self._hushed else found

    def _event(self, told: Told, known: Event | None) -> Event:
        tracked, model = told.event, self._model
        first, last = tracked.rows
        start, end = self._number(first), self._number(last - 1) + 1
        peak, score = self._peak(first, last)
        tails = model.alarm.tails
        rare = probability(tails, {line: member.top for line, member in tracked.lines.items()})
        line = describe(tracked.strongest, len(model.channels))
        shares = self._shares(tracked)
        partner = self._partner(line, shares) if line.kind == "relation" else None
        if known is None:
            outside = self._conditions(first, tracked.alarm)
            kind = CONDITIONS if outside else ANOMALY
        else:
            kind, outside = known.kind, known.conditions
        start_time = self._time(first)
        if start_time is None and known is not None:
            start_time = known.start_time
        return Event(
            start,
            end,
            self._number(peak),
            kind,
            score=score,
            ratio=1 + tracked.margin / float(tails.needed(self.rate)[tracked.strongest]),
            probability=rare,
            normal_rows=tails.n_rows,
            severity=severity(rare),
            alarm=self._number(tracked.alarm),
            start_time=start_time,
            end_time=self._time(last - 1),
            peak_time=self._time(peak),
            alarm_time=self._time(tracked.alarm) if known is None else known.alarm_time,
            signal=line.kind,
            shares=shares,
            partner=partner,
            conditions=outside,
            lasting=tracked.lasting,
            groups=groups_of(shares, model.config.components),
            readings=self._readings(peak, shares) or (() if known is None else known.readings),
        )

    def _conditions(self, start: int, alarm: int) -> str:
        """What was outside training shortly before an event or up to its alarm; empty: nothing."""
        model = self._model
        kept, begin = self._recent(self._rows)
        rows = kept[max(start - LINGER - begin, 0) : max(alarm + 1 - begin, 0)]
        rows = rows[~np.isnan(rows).any(axis=1)]
        return model.conditions.words(rows, model.channels, model.watched)

    def _shares(self, tracked: Tracked) -> tuple[tuple[str, float], ...]:
        """Channels by their share of the suspicion, highest first."""
        weight = np.ones(len(self._model.channels))
        for channel, margin in self._stream.tracker.kinds(tracked).items():
            weight[channel] += min(max(margin, 0.0), MOST_MARGIN)
        found = tracked.shares * weight * self._model.alarm.watched
        total = float(found.sum())
        if not total > 0:
            return ()
        order = np.argsort(-found, kind="stable")
        named = [(self._model.channels[i], float(found[i]) / total) for i in order.tolist()]
        return tuple(pair for pair in named if pair[1] >= NAMED)

    def _partner(self, line: Line, shares: tuple[tuple[str, float], ...]) -> str | None:
        """The channel that the first suspect no longer goes with, where the line is about both."""
        if line.channel is None or not shares:
            return None
        names = self._model.channels
        pair = names[line.channel], names[int(self._model.alarm.cells.partner[line.channel])]
        if shares[0][0] not in pair or pair[0] == pair[1]:
            return None
        return pair[1] if shares[0][0] == pair[0] else pair[0]

    def _readings(self, peak: int, shares: tuple[tuple[str, float], ...]) -> tuple[Reading, ...]:
        """The suspects at the peak, against what was expected; none where it is too long ago."""
        kept, begin = self._recent(self._rows)
        if not begin <= peak < begin + len(kept):
            return ()
        values = kept[peak - begin]
        below, above = np.split(self._recent(self._range)[0][peak - begin].astype(np.float64), 2)
        found = []
        for name, _ in shares[:READ]:
            i = self._model.channels.index(name)
            low, high = values[i] - below[i], values[i] + above[i]
            found.append(Reading(name, float(values[i]), float(low), float(high)))
        return tuple(found)

    def latest(self, n: int) -> Latest:
        """The last n rows that were judged."""
        values, gaps = self._rows.last(n).copy(), self._range.last(n).astype(np.float64)
        below, above = np.split(gaps, 2, axis=1)
        evidence = self._surprise.last(n)[:, 1].copy()
        return Latest(
            self._times.last(n)[:, 0].copy(), evidence, values, values - below, values + above
        )

    def _recent(self, buffer: RowBuffer) -> tuple[Any, int]:
        """The last KEPT rows up to the one that is spoken of, and the number of the first."""
        later = self._n - 1 - self._at
        kept = buffer.last(KEPT + later)
        kept = kept[: len(kept) - later]
        return kept, self._at + 1 - len(kept)

    def _peak(self, first: int, last: int) -> tuple[int, float]:
        """The most surprising of rows [first, last), as far as they are kept."""
        kept, begin = self._recent(self._surprise)
        low = max(first, begin)
        inside = kept[low - begin : max(last - begin, 0), 0]
        if not len(inside) or np.isnan(inside).all():
            return first, float("nan")
        at = int(np.nanargmax(inside))
        return low + at, float(inside[at])

    def _pattern(self, event: Event) -> Pattern | None:
        """How the channels of an event left their past; None where it is too long ago."""
        model = self._model
        kept, first = self._recent(self._rows)
        at = event.start - first, event.end - first
        if at[0] < 1 or self._number(self._at) < self._at or np.isnan(kept).any():
            return None
        low = max(0, at[0] - BEFORE)
        part = kept[low : at[1]]
        place = at[0] - low, at[1] - low
        return Pattern.of(
            event.id, part, place, model.channels, model.normal, model.drift_range, event.ratio
        )

    # ------------------------------------------------------------ what people say

    def rest_after(self, rows: int) -> None:
        """Tell of open events without new evidence for so many rows."""
        self._stream.tracker.rest = rows

    def suppress(self) -> None:
        """What is open is normal: it says no more, and ends as accepted."""
        self._hushed |= set(self._open)

    def times_of(self, event: Event) -> Event:
        """An event of recent rows with its times."""
        self._at = self._n - 1
        if self._missing:
            return event
        stamps = [self._time(event.start), self._time(event.end - 1)]
        return replace(event, start_time=stamps[0], end_time=stamps[1])

    # ------------------------------------------------------------ rows and times

    def _number(self, row: int) -> int:
        """The user's number of an internal row."""
        for since, before in reversed(self._offsets):
            if row >= since:
                return row - before
        return row

    def _recent_offsets(self) -> list[tuple[int, int]]:
        old = [one for one in self._offsets if one[0] <= self._n - 2 * LONGEST]
        return [*old[-1:], *(one for one in self._offsets if one[0] > self._n - 2 * LONGEST)]

    def _time(self, row: int) -> np.datetime64 | None:
        kept, begin = self._recent(self._times)
        if not begin <= row < begin + len(kept) or np.isnat(kept[row - begin, 0]):
            return None
        stamp: np.datetime64 = kept[row - begin, 0]
        return stamp

    # ------------------------------------------------------------------- state

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        return {
            **{f"stream.{name}": array for name, array in self._stream.state().items()},
            "counts": np.array([self._n, self._missing, self._quiet_until], np.int64),
            "offsets": np.array(self._offsets, np.int64),
            "queue": self._queue,
            "queued": self._times_queue.view(np.int64),
            "times": self._times.last(KEPT)[:, 0].copy().view(np.int64),
            "surprise": self._surprise.last(KEPT).copy(),
            "rows": self._rows.last(KEPT).copy(),
            "held": self._held,
            "held_scores": self._held_scores,
            "range": self._range.last(KEPT).copy(),
        }

    def description(self) -> dict[str, Any]:
        """The open events as plain values."""
        return {
            "tracked": self._stream.tracker.description(),
            "open": [[key, plain_event(event)] for key, event in self._open.items()],
            "hushed": sorted(self._hushed),
        }

    def resume(self, state: Mapping[str, NDArray[Any]], events: Mapping[str, Any]) -> None:
        """Take back a state."""
        own = {k.removeprefix("stream."): v for k, v in state.items() if k.startswith("stream.")}
        self._stream.resume(own, events["tracked"])
        self._n, self._missing, self._quiet_until = (int(x) for x in state["counts"])
        self._offsets = [(int(a), int(b)) for a, b in state["offsets"]]
        self._queue = state["queue"].copy()
        self._times_queue = state["queued"].copy().view("datetime64[ns]")
        rows, within = state["rows"], state["range"]
        n_channels = len(self._model.channels)
        if rows.shape[1:] != (n_channels,) or within.shape != (len(rows), 2 * n_channels):
            raise ValueError(f"its last rows have the shapes {rows.shape} and {within.shape}")
        self._held = state["held"].reshape(-1, n_channels).copy()
        self._held_scores = state["held_scores"].reshape(len(self._held)).copy()
        self._rows.refill(rows.copy())
        self._range.refill(within.astype(np.float32))
        self._times.refill(state["times"].view("datetime64[ns]")[:, None].copy())
        if state["surprise"].shape != (len(rows), 2):
            raise ValueError(f"its surprise has the shape {state['surprise'].shape}")
        self._surprise.refill(state["surprise"].copy())
        self._open = {int(key): restored_event(event) for key, event in events["open"]}
        self._hushed = {int(key) for key in events["hushed"]}


def _joined(a: Taken, b: Taken) -> Taken:
    both = zip(a[1:], b[1:], strict=True)
    return Taken(a.changes + b.changes, *(np.concatenate(pair) for pair in both))


def accepted_change(stretch: Stretch, feed: AlarmFeed | None) -> Change:
    """A stretch that was recognised as accepted has ended, for the record."""
    event = stretch.event()
    return Change("accepted", event if feed is None else feed.times_of(event))


_PLAIN = (
    "start", "end", "peak", "kind", "score", "ratio", "probability", "severity", "alarm", "signal",
    "partner", "conditions", "lasting", "normal_rows",
)  # fmt: skip
_STAMPS = ("start_time", "end_time", "peak_time", "alarm_time")


def plain_event(event: Event) -> dict[str, Any]:
    """An event as plain values; `restored_event` takes them back."""
    plain = {name: getattr(event, name) for name in _PLAIN}
    stamps = {name: _stamp(getattr(event, name)) for name in _STAMPS}
    pairs = {name: [list(one) for one in getattr(event, name)] for name in ("shares", "readings")}
    return {**plain, **stamps, **pairs, "groups": list(event.groups)}


def restored_event(plain: Mapping[str, Any]) -> Event:
    """The reverse of `plain_event`."""
    fields: dict[str, Any] = {name: plain[name] for name in _PLAIN}
    fields |= {name: _moment(plain[name]) for name in _STAMPS}
    shares = tuple((str(name), float(share)) for name, share in plain["shares"])
    readings = tuple(Reading(*one) for one in plain["readings"])
    groups = tuple(map(str, plain["groups"]))
    return Event(**fields, shares=shares, readings=readings, groups=groups)


def _stamp(time: np.datetime64 | None) -> int | None:
    return None if time is None else int(time.astype("datetime64[ns]").astype(np.int64))


def _moment(stamp: int | None) -> np.datetime64 | None:
    return None if stamp is None else np.datetime64(stamp, "ns")
