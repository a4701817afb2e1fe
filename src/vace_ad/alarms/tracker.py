"""Excursions to events, row by row: what opens, what belongs together, what is over.

A line that rises above its limit opens an event, or joins the open one that its excursion reaches
into. A line is over when it fell back to zero, or from its highest point by as much as its limit,
or has not risen for some time; an event when all of its lines are. It began where the excursion
began that raised it, and it ends where the line with most evidence was highest, or where the score
was, if that was earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.constants import MOST_MARGIN, REST
from vace_ad.alarms.evidence import Nats
from vace_ad.alarms.scan import Limits, Tails, heights, prices
from vace_ad.alarms.tracked import FADING, KEPT, Member, Notice, Tracked, What, joined

Array = NDArray[np.float64]

SLAB = 256  # rows after which limits fall back a little, counted from the stream's first
REPORT_AGAIN = 64  # rows after which an open event that grew is reported again


class Tracker:
    """The scan of a stream under a budget, and the events that are open."""

    def __init__(
        self,
        tails: Tails,
        n_channels: int,
        rate: float,
        longest: int | None = None,
        join: int = 0,
        follow: bool = True,
        first: int = 0,
    ) -> None:
        """Under a budget of `rate` alarms a row; limits `follow` the stream.

        A line is over after `longest` rows, and events `join` rows apart are one. Rows are counted
        from `first` on.
        """
        n_lines = len(tails.level)
        self._limits, self._rate = Limits(tails, rate, follow), rate
        self._price = prices(n_channels)
        self._longest, self._join = longest, join
        self._n_channels = n_channels
        self.n_rows = self._first = first
        self._w = np.zeros(n_lines, np.int64)
        self._top = np.zeros(n_lines, np.int64)
        self._start = np.full(n_lines, first, np.int64)
        self._at = np.zeros(n_lines, np.int64)
        self._crossed = np.zeros(n_lines, bool)
        self._shown = self._limits.limit.copy()  # limits that ratios are given against
        self._events: list[Tracked] = []
        self._spent = 0  # rows before it have had their event
        self._shares = np.zeros((KEPT, n_channels), np.int64)  # of the last rows, in turn
        self.rest: int | None = None  # rows without new evidence after which an event rests
        self.lasted: list[int] = []  # lines whose level is to become the new baseline

    @property
    def _seen(self) -> int:
        """Rows taken so far."""
        return self.n_rows - self._first

    # ------------------------------------------------------------------- rows

    def add(self, nats: Nats, shares: Nats) -> tuple[list[Notice], Array]:
        """Take rows (n, n_lines) with the channels' shares (n, n_channels) of each.

        What they change, and each row's highest evidence over its limit, (n,).
        """
        notices: list[Notice] = []
        ratios = np.empty(len(nats))
        at = 0
        while at < len(nats):
            n = min(SLAB - self._seen % SLAB, len(nats) - at)
            if self._seen % SLAB == 0:
                self._relax()
            part = slice(at, at + n)
            found = self._slab(nats[part], shares[part], notices)
            ratios[at : at + len(found)] = found
            at += len(found)
            if self.lasted:  # the rows after it are judged by the new baseline
                return notices, ratios[:at]
        return notices, ratios

    def _slab(self, nats: Nats, shares: Nats, notices: list[Notice]) -> Array:
        """Rows between two settings of the limits; the highest evidence over its limit of each."""
        n, level = len(nats), self._limits.level
        found = heights(nats, self._price, self._w)
        warm = np.flatnonzero((found.max(axis=0) > level) | (self._top > level))
        cold = np.ones(len(self._w), bool)
        cold[warm] = False
        high = np.zeros(n)  # of lines above their levels, by limits that move
        if len(warm) or self._events:
            n = self._walk(warm, nats, shares, found, high, notices)
        found = found[:n]
        self._settle(cold, found)
        self._keep(shares[:n])
        self.n_rows += n
        low = np.where(found > level, 0, found) / self._shown
        return np.asarray(np.maximum(low.max(axis=1, initial=0.0), high[:n]))

    def _settle(self, cold: NDArray[np.bool_], found: Nats) -> None:
        """Where lines that stayed below their level stand after these rows."""
        n = len(found)
        rows = np.arange(n)[:, None]
        zeros = np.where(found == 0, rows, -1).max(axis=0)  # last row at zero
        since = np.where(rows > zeros, found, -1)
        top, at = since.max(axis=0), since.argmax(axis=0)
        fresh = cold & (zeros >= 0)
        self._start[fresh] = self.n_rows + zeros[fresh] + 1
        higher = cold & (fresh | (top > self._top))
        self._top[higher] = np.maximum(top[higher], 0)
        self._at[higher] = self.n_rows + at[higher]
        self._w[cold] = found[-1][cold]

    def _walk(
        self,
        warm: NDArray[np.intp],
        nats: Nats,
        shares: Nats,
        found: Nats,
        high: Array,
        notices: list[Notice],
    ) -> int:
        """Lines near or above their limits, row by row; how many rows were taken."""
        limits = self._limits
        steps = nats[:, warm] - self._price[warm]
        w, top, start = self._w[warm], self._top[warm], self._start[warm]
        at, crossed = self._at[warm], self._crossed[warm]
        level, limit, asked = limits.level[warm], limits.limit[warm], limits.asked[warm]
        scored = len(warm) > 0 and warm[-1] == len(self._w) - 1
        n, path, none = len(nats), np.empty_like(steps), np.zeros(len(w), bool)
        fresh = w == 0
        for t in range(n):  # of every row: count_nonzero is far quicker than any()
            row = self.n_rows + t
            if np.count_nonzero(fresh):
                start[fresh], top[fresh], crossed[fresh] = row, 0, False
            w = np.maximum(w + steps[t], 0)
            at[w > top] = row
            top = np.maximum(top, w)
            near = w > level
            confirmed = bool(scored and near[-1])
            for event in self._events:
                if row - event.since < KEPT:
                    event.running = event.running + shares[t] * FADING[row - event.since]
                event.confirmed |= confirmed
            if np.count_nonzero(near):
                bar = limit if confirmed else asked
                high[t] = np.maximum.reduce(w / bar, where=near, initial=0.0)
                rose = np.flatnonzero((w > bar) & ~crossed)
                for i in rose[np.argsort(-start[rose], kind="stable")].tolist():  # latest first
                    if start[i] < self._spent:  # it has had its event
                        w[i], top[i] = 0, 0
                        continue
                    crossed[i] = True
                    self._cross(int(warm[i]), row, int(start[i]), int(at[i]), int(top[i]),
                                shares, t, confirmed, notices)  # fmt: skip
            if self._events:
                self._grow(warm, start, at, top, crossed, row, notices)
            fresh = w == 0
            over, lasting = fresh & (top > level), none
            if np.count_nonzero(crossed):
                over |= crossed & ((top - w > limit) | (row - at >= REST))
                if self._longest is not None:
                    lasting = crossed & (row + 1 - start >= self._longest)
                    over |= lasting
            if np.count_nonzero(over):
                for i in np.flatnonzero(over).tolist():
                    self._end(int(warm[i]), int(top[i]), bool(crossed[i]), bool(lasting[i]), row)
                    w[i], top[i], crossed[i] = 0, 0, False
                fresh, limit, asked = w == 0, limits.limit[warm], limits.asked[warm]
            for event in [event for event in self._events if not event.open]:
                # A line that rose with it may still rise above its limit, and belongs to it.
                until = event.end + self._join
                rising = (w > level) & (start <= until) & (row - at < REST)
                if row + 1 >= until and not rising.any():
                    self._events.remove(event)
                    self._spent = max(self._spent, event.end)
                    self._notify("resolve", row, event, notices)
                    if not event.confirmed and event.margin < MOST_MARGIN:
                        limits.ask_more(row - self._first)
                        asked = limits.asked[warm]
            if self.rest is not None and self._events:
                self._rest(self.rest, row, notices)
            path[t] = w
            if self.lasted:
                n = t + 1
                break
        found[:n, warm] = path[:n]
        start[fresh] = self.n_rows + n  # the next row may begin an excursion
        self._w[warm], self._top[warm], self._start[warm] = w, top, start
        self._at[warm], self._crossed[warm] = at, crossed
        return n

    # ----------------------------------------------------------------- events

    def _cross(
        self, line: int, row: int, start: int, at: int, top: int,
        shares: Nats, t: int, confirmed: bool, notices: list[Notice],
    ) -> None:  # fmt: skip
        """A line rose above its limit."""
        member = Member(start, at + 1, top)
        for event in reversed(self._events):
            if start <= event.end + self._join:
                event.lines[line] = joined(event.lines.get(line, member), member)
                event.open.add(line)
                event.end = max(event.end, at + 1)
                return
        since = max(start, row - KEPT, self._first)
        past = np.arange(since, self.n_rows) % KEPT
        first = max(since - self.n_rows, 0)
        rows = np.concatenate([self._shares[past], shares[first : t + 1]])[:KEPT]
        total = FADING[: len(rows)] @ rows
        event = Tracked(row, since, total, total, {}, {line}, at + 1)
        event.lines[line], event.confirmed = member, confirmed
        self._events.append(event)
        self._notify("open", row, event, notices)

    def _grow(
        self, warm: NDArray[np.intp], start: Nats, at: Nats, top: Nats,
        crossed: NDArray[np.bool_], row: int, notices: list[Notice],
    ) -> None:  # fmt: skip
        """Open events reach as far as their lines do; what grew much is reported again."""
        rose = np.flatnonzero(crossed & (at == row))
        each = zip(warm[rose].tolist(), start[rose].tolist(), top[rose].tolist(), strict=True)
        members = {line: Member(first, row + 1, high) for line, first, high in each}
        for event in self._events:
            mine = members.keys() & event.open
            if mine:
                event.lines.update(
                    (line, joined(event.lines[line], members[line])) for line in mine
                )
                event.shares, event.end = event.running, row + 1
            if (row - self._first) % REPORT_AGAIN == 0:
                margins = self._margins(event, row)
                if max(margins.values()) > 2 * event.reported:
                    self._notify("update", row, event, notices)

    def _rest(self, rest: int, row: int, notices: list[Notice]) -> None:
        """Tell of open events that rest, and of those that rise again."""
        for event in self._events:
            resting = row + 1 - event.last_seen >= rest
            if resting != event.resting:
                event.resting = resting
                self._notify("rest" if resting else "wake", row, event, notices)

    def _margins(self, event: Tracked, row: int) -> dict[int, float]:
        """Nats by which each line of an event is rarer than the budget allows."""
        limits, seen = self._limits, row - self._first
        return {
            line: event.over[line] if line in event.over else limits.margin(line, one.top, seen)
            for line, one in event.lines.items()
        }

    def _notify(self, what: What, row: int, event: Tracked, notices: list[Notice]) -> None:
        """Say what became of an event, as it stands at this row."""
        event.margins = self._margins(event, row)
        event.reported = event.margin
        now = replace(event, lines=dict(event.lines), open=set(event.open))
        notices.append(Notice(what, row, now))

    def _end(self, line: int, top: int, crossed: bool, lasting: bool, row: int) -> None:
        """An excursion is over."""
        seen = row - self._first
        margin = self._limits.margin(line, top, seen)
        self._limits.learn(line, top, seen)
        if not crossed:
            return
        for event in self._events:
            if line in event.open:
                event.open.discard(line)
                event.over[line] = max(margin, event.over.get(line, margin))
                event.lasting |= lasting
        if lasting:
            self.lasted.append(line)

    def finish(self) -> list[Notice]:
        """Resolve what is open when the stream ends."""
        notices: list[Notice] = []
        for event in self._events:
            self._notify("resolve", self.n_rows - 1, event, notices)
        self._events = []
        return notices

    @property
    def events(self) -> list[Tracked]:
        """The open events, oldest first."""
        return self._events

    def _relax(self) -> None:
        """Limits at the beginning of a slab."""
        self._limits.relax(self._seen, self._rate * SLAB)
        self._shown = self._limits.limit.copy()

    def _keep(self, shares: Nats) -> None:
        last = shares[-KEPT:]
        place = np.arange(self.n_rows + len(shares) - len(last), self.n_rows + len(shares)) % KEPT
        self._shares[place] = last

    def skip(self, n: int) -> list[Notice]:
        """Rows without evidence: every excursion is over, so is every event."""
        notices = self.finish()
        self._w[:] = 0
        self._top[:] = 0
        self._crossed[:] = False
        left = n
        while left:
            if self._seen % SLAB == 0:
                self._relax()
            some = min(SLAB - self._seen % SLAB, left)
            self.n_rows += some
            left -= some
        self._start[:] = self.n_rows  # the next row may begin an excursion
        return notices

    # ------------------------------------------------------------------- state

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows, but for the events."""
        return {
            "lines": np.stack([self._w, self._top, self._start, self._at,
                               self._crossed.astype(np.int64), self._shown,
                               self._limits.limit, self._limits.asked]),
            "learned": self._limits.learned,
            "doubt": np.array([self._limits.doubt]),
            "n": np.array([self.n_rows, self._spent, self._first], np.int64),
            "shares": self._shares,
        }  # fmt: skip

    def description(self) -> list[dict[str, Any]]:
        """The open events as plain values."""
        return [event.plain() for event in self._events]

    def resume(self, state: Mapping[str, NDArray[Any]], events: list[dict[str, Any]]) -> None:
        """Take back a state."""
        lines = state["lines"]
        if lines.shape != (8, len(self._w)) or state["learned"].shape != (2, len(self._w)):
            raise ValueError(f"its lines have the shape {lines.shape}")
        self._w, self._top, self._start, self._at = (x.copy() for x in lines[:4])
        self._crossed, self._shown = lines[4].astype(bool), lines[5].copy()
        self.n_rows, self._spent, self._first = (int(n) for n in state["n"])
        self._limits.learned = state["learned"].copy()
        shares = state["shares"]
        if shares.shape != self._shares.shape:
            raise ValueError(f"its shares have the shape {shares.shape}")
        self._shares = shares.copy()
        self._limits.limit, self._limits.asked = lines[6].copy(), lines[7].copy()
        self._limits.doubt = float(state["doubt"][0])
        self._events = [Tracked.restored(one) for one in events]
