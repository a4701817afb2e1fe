"""Alarms of a stream, table or live: what its rows open and resolve, in the user's own rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarm_stream import AlarmStream, Change, Taken
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.events import (
    ACCEPTED,
    ANOMALY,
    CONDITIONS,
    Event,
    groups_of,
    plain_event,
    probability,
    restored_event,
    severity,
)
from vace_ad.alarms.learned import Learned
from vace_ad.alarms.pattern import BEFORE, Pattern
from vace_ad.alarms.recent import Latest, RecentRows
from vace_ad.alarms.scan import Line, describe
from vace_ad.alarms.suppression import Stretch
from vace_ad.alarms.suspects import LINGER, blame, suspicion
from vace_ad.alarms.tracked import Notice, Tracked
from vace_ad.frames.segments import Piece, Rules
from vace_ad.signals.protocol import prefixed, under

Array = NDArray[np.float64]

NAMED = 0.01  # share of the suspicion from which on a channel is named


class AlarmFeed:
    """The events of a stream of rows that are complete, in order."""

    def __init__(
        self, model: Learned, budget: Budget, rules: Rules | None, step: int | None
    ) -> None:
        self._model, self._rules = model, rules or Rules()
        rate = budget.rate(model.step or step)
        assert rate is not None  # thresholds of scores have a feed of their own
        self.rate = rate
        how = model.config.new_normal_after or None, self._rules.join, model.config.adapt
        self._stream = AlarmStream(model.alarm, rate, *how)
        self._recent = RecentRows(model.channels)
        self._queue = np.empty((0, 2))  # of rows not decided: whether it came, what divides it
        self._times_queue = np.empty(0, "datetime64[ns]")
        self._decided = np.empty(0, np.intp)  # rows decided when each of the newest had come
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
        tolerated: Array | None,
        waiting: NDArray[np.intp] | None = None,
    ) -> None:
        """Rows that are on their way to be decided; `times` and `tolerated` of those that came.

        `waiting` (n,) tells how many were not decided when each of them had come.
        """
        n = len(came)
        arrived = self._recent.n + len(self._queue) + np.arange(1, n + 1)
        self._decided = arrived if waiting is None else arrived - waiting
        self._recent.put_in(arrived[~came].tolist())
        queue = np.stack([came, np.ones(n)], axis=1)
        if tolerated is not None:
            queue[came, 1] = tolerated
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
            first = self._recent.n + len(self._held)
            by = self._brought(first) if piece.n else first  # a cut: the row after it
            if piece.off or not len(self._held):
                n = piece.n + len(self._held)
                self._held, self._held_scores = self._held[:0], self._held_scores[:0]
                return self._judge(None, n, by=by)
            return self._let_go(by).followed_by(self._judge(None, piece.n, by=by))
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
            notices = self._stream.skip(n)
            evidence = surprise = np.full(n, np.nan)
            rows = np.full((n, len(self._model.channels)), np.nan)
            within, nats = np.tile(rows, 2), np.zeros(rows.shape, np.int64)
        else:
            tolerated = queue[:, 1]
            judged = self._stream.add(rows, scores, None if (tolerated == 1).all() else tolerated)
            notices, evidence, surprise, expected, nats = judged
            within = np.concatenate([rows - expected.lower, expected.upper - rows], axis=1)
        self._recent.add(rows, times, np.stack([surprise, evidence], axis=1), within, nats)
        changes = []
        for each in notices:
            row = self._brought(each.row + self._wait) if by is None else by
            changes += self._changes(each, self._recent.number(row))
        return Taken(tuple(changes), evidence[came], surprise[came])

    def finish(self) -> Taken:
        """Judge what waits, and resolve what is open at the end."""
        by = self._recent.n + len(self._held) - 1
        last = self._let_go(by)
        self._recent.at = by
        notices = self._stream.tracker.finish()
        changes = [
            change for each in notices for change in self._changes(each, self._recent.number(by))
        ]
        return last._replace(changes=(*last.changes, *changes))

    def restart(self, new_level: bool = False) -> Taken:
        """Judge what follows afresh: limits and events start anew, rows go on.

        With `new_level`, the level of the last rows is normal.
        """
        last = self._let_go(self._recent.n)
        self._stream.restart(new_level)
        self._open, self._hushed = {}, set()
        return last._replace(changes=())

    # ------------------------------------------------------------------ events

    def _brought(self, row: int) -> int:
        """The row with which a row was decided: later ones tell how long its gap is."""
        newest = self._recent.n + len(self._queue) - 1
        by = int(np.searchsorted(self._decided, row, side="right"))
        return min(newest + 1 - len(self._decided) + by, newest)

    def _changes(self, notice: Notice, row: int) -> list[Change]:
        """What is said of a change that a row brought, under the rules and what people said."""
        key, self._recent.at = notice.event.alarm, notice.row
        known = self._open.get(key)
        event = self._event(notice, known)
        short = event.rows < self._rules.min_length
        if known is None and (short or event.start < self._quiet_until):
            return []
        opened = known is None and notice.what != "open"
        found = [Change("open", event, row=row)] if opened else []
        self._open[key] = event
        if notice.what != "resolve":
            if notice.what == "open" or known is not None:
                pattern = self._pattern(event) if notice.what == "rest" else None
                found.append(Change(notice.what, event, pattern, row))
        else:
            del self._open[key]
            self._quiet_until = event.end + self._rules.cooldown if self._rules.cooldown else -1
            pattern = self._pattern(event)
            if key in self._hushed:
                self._hushed.discard(key)
                return [Change("accepted", replace(event, kind=ACCEPTED), pattern, row)]
            found.append(Change("resolve", event, pattern, row))
        return [] if key in self._hushed else found

    def _event(self, notice: Notice, known: Event | None) -> Event:
        tracked, model, recent = notice.event, self._model, self._recent
        first, last = tracked.rows
        start, end = recent.number(first), recent.number(last - 1) + 1
        peak, score = recent.peak(first, last)
        tails = model.alarm.tails
        rare = probability(tails, {line: member.top for line, member in tracked.lines.items()})
        line = describe(tracked.strongest, len(model.channels))
        shares = self._shares(tracked, known)
        partner = self._partner(line, shares) if line.kind == "relation" else None
        if known is None:
            outside = self._conditions(first, tracked.alarm)
            kind = CONDITIONS if outside else ANOMALY
        else:
            kind, outside = known.kind, known.conditions
        start_time = recent.time(first)
        if start_time is None and known is not None:
            start_time = known.start_time
        return Event(
            start,
            end,
            recent.number(peak),
            kind,
            score=score,
            ratio=1 + tracked.margin / float(tails.needed(self.rate)[tracked.strongest]),
            probability=rare,
            normal_rows=tails.n_rows,
            severity=severity(rare),
            alarm=recent.number(tracked.alarm),
            start_time=start_time,
            end_time=recent.time(last - 1),
            peak_time=recent.time(peak),
            alarm_time=recent.time(tracked.alarm) if known is None else known.alarm_time,
            signal=line.kind,
            shares=shares,
            partner=partner,
            conditions=outside,
            lasting=tracked.lasting,
            groups=groups_of(shares, model.config.components),
            readings=recent.readings(peak, shares) or (() if known is None else known.readings),
        )

    def _conditions(self, start: int, alarm: int) -> str:
        """What was outside training shortly before an event or up to its alarm; empty: nothing."""
        model = self._model
        kept, begin = self._recent.values()
        rows = kept[max(start - LINGER - begin, 0) : max(alarm + 1 - begin, 0)]
        rows = rows[~np.isnan(rows).any(axis=1)]
        return model.conditions.words(rows, model.channels, model.watched)

    def _shares(self, tracked: Tracked, known: Event | None) -> tuple[tuple[str, float], ...]:
        """Channels by their share of the suspicion, highest first.

        As they were known, where the rows before the event are no longer kept.
        """
        model, (kept, first) = self._model, self._recent.values()
        start, end = (min(max(row - first, 0), len(kept)) for row in tracked.rows)
        if known is not None and start < BEFORE and first > 0:
            return known.shares
        found = tracked.suspicion(1 + model.alarm.cells.n_averages)
        if start < end:
            nats = self._recent.nats()[start:end]
            found += suspicion(kept[:end], start, end, model.normal, model.drift_range, nats)
        named = blame(model.channels, np.where(model.alarm.watched, found, 0.0))
        return tuple(pair for pair in named.top(len(named.names)) if pair[1] >= NAMED)

    def _partner(self, line: Line, shares: tuple[tuple[str, float], ...]) -> str | None:
        """The channel that the first suspect no longer goes with, where the line is about both."""
        if line.channel is None or not shares:
            return None
        names = self._model.channels
        pair = names[line.channel], names[int(self._model.alarm.cells.partner[line.channel])]
        if shares[0][0] not in pair or pair[0] == pair[1]:
            return None
        return pair[1] if shares[0][0] == pair[0] else pair[0]

    def _pattern(self, event: Event) -> Pattern | None:
        """How the channels of an event left their past; None where it is too long ago."""
        model, recent = self._model, self._recent
        kept, first = recent.values()
        at = event.start - first, event.end - first
        if at[0] < 1 or recent.number(recent.at) < recent.at or np.isnan(kept).any():
            return None
        low = max(0, at[0] - BEFORE)
        part = kept[low : at[1]]
        place = at[0] - low, at[1] - low
        return Pattern.of(
            event.id, part, place, model.channels, model.normal, model.drift_range, event.ratio
        )

    def latest(self, n: int) -> Latest:
        """The last n rows that were judged."""
        return self._recent.latest(n)

    # ------------------------------------------------------------ what people say

    def rest_after(self, rows: int) -> None:
        """Tell of open events without new evidence for so many rows."""
        self._stream.tracker.rest = rows

    def accept(self, channels: Collection[str]) -> None:
        """Patterns of these channels are accepted."""
        self._stream.accepted = np.isin(self._model.channels, list(channels))

    def suppress(self) -> None:
        """What is open is normal: it says no more, and ends as accepted."""
        self._hushed |= set(self._open)

    def times_of(self, event: Event) -> Event:
        """An event of recent rows with its times."""
        self._recent.at = self._recent.n - 1
        if self._recent.missing:
            return event
        stamps = [self._recent.time(event.start), self._recent.time(event.end - 1)]
        return replace(event, start_time=stamps[0], end_time=stamps[1])

    # ------------------------------------------------------------------- state

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        return {
            **prefixed("stream", self._stream.state()),
            **prefixed("recent", self._recent.state()),
            "quiet_until": np.array([self._quiet_until], np.int64),
            "queue": self._queue,
            "queued": self._times_queue.view(np.int64),
            "held": self._held,
            "held_scores": self._held_scores,
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
        self._stream.resume(under("stream", state), events["tracked"])
        self._recent.resume(under("recent", state))
        self._quiet_until = int(state["quiet_until"][0])
        self._queue = state["queue"].copy()
        self._times_queue = state["queued"].copy().view("datetime64[ns]")
        self._held = state["held"].reshape(-1, len(self._model.channels)).copy()
        self._held_scores = state["held_scores"].reshape(len(self._held)).copy()
        self._open = {int(key): restored_event(event) for key, event in events["open"]}
        self._hushed = {int(key) for key in events["hushed"]}


def accepted_change(stretch: Stretch, feed: AlarmFeed | None) -> Change:
    """A stretch that was recognised as accepted has ended, for the record."""
    event = stretch.event()
    return Change("accepted", event if feed is None else feed.times_of(event))
