"""Suppression: accepted patterns are recognised as rows arrive and removed from them.

A pattern may have begun at any row that leaves its past. From there on each row must lie near a
place of the pattern's profile, and the places may only go forward, a little faster or slower than
they did; as soon as a row fits none, the pattern is over. While it lasts, its channels are replaced
by its baseline, and the detector scores that: a fault in another channel, a larger one in
the same channel, or one that lasts longer is scored as ever. Only the past is looked at, and the
answer does not depend on how rows are cut into chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import ACCEPTED, Event
from vace_ad.alarms.pattern import BEFORE, Pattern
from vace_ad.alarms.pattern_tracker import START, Follower
from vace_ad.alarms.suspects import DriftRange
from vace_ad.frames.segments import missing_cells
from vace_ad.signals.baseline_model import Normal

Array = NDArray[np.float64]

EVERY = 8  # rows between two looks at where channels have been
LEAD = 8  # rows before a pattern is clear that may belong to it already
RETURN = 0.8  # of what had gone by then that is left after each further row
MOST = 100  # patterns that are looked for, the newest ones


class Stretch(NamedTuple):
    """Rows [start, end) that a pattern explained."""

    pattern: str  # its id
    start: int
    end: int
    channels: tuple[str, ...]
    allowance: float  # evidence over its limit that was tolerated
    named: bool = False  # whether a person named these very rows

    def event(self) -> Event:
        """The stretch as an event of its own kind."""
        share = 1.0 / len(self.channels)
        shares = tuple((name, share) for name in self.channels)
        return Event(self.start, self.end, self.start, ACCEPTED, shares=shares, like=self.pattern)


class Recognised(NamedTuple):
    """Rows without patterns."""

    rows: Array  # (n, n_channels)
    allowed: Array  # (n,), evidence over its limit that is tolerated: 1 is the limit itself
    ended: list[Stretch]


class Recogniser:
    """Takes accepted patterns out of rows as they come."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        channels: Sequence[str],
        normal: Normal,
        drift_range: DriftRange,
        period: int,  # period of the channels, in rows
    ) -> None:
        self._channels, self._normal, self._drift_range = tuple(channels), normal, drift_range
        self._period = period
        self._n = 0  # rows seen
        self._past = np.empty((0, len(self._channels)))  # the last rows, patterns taken out
        self._last = normal.mean.copy()  # known values, for cells that are missing
        self._middle = normal.mean.copy()  # of the last rows
        self._relax_rows = 0  # rows after a match with a relaxed limit
        self._relax_factor = 1.0  # of the limit there
        self._held = 0  # rows for which a pattern may have been beginning
        self._followers: list[Follower] = []
        self.replace(patterns)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """What is looked for."""
        return tuple(each.pattern for each in self._followers)

    def begin(self, n: int) -> None:
        """The next row is that of this number."""
        self._n = n

    def replace(self, patterns: Sequence[Pattern]) -> None:
        """Look for these patterns from now on; those that stay go on where they are."""
        before = {each.pattern.id: each for each in self._followers}
        known = [p for p in patterns if set(p.channels) <= set(self._channels)][-MOST:]
        self._followers = [
            before.get(p.id) or Follower(p, self._channels, self._normal, self._drift_range)
            for p in known
        ]

    def add(self, rows: Array, cuts: Sequence[int] = ()) -> Recognised:
        """The rows (n, n_channels) without what patterns explain.

        Nothing reaches across the rows `cuts`, before which time jumped.
        """
        ended: list[Stretch] = []
        clean, allowed = rows.copy(), np.ones(len(rows))
        at = 0
        while at < len(rows):
            if at in cuts:
                ended += self.finish()
                self._past = self._past[:0]
            stop = min([len(rows), at + EVERY - self._n % EVERY, *(c for c in cuts if c > at)])
            if self._n % EVERY == 0 and len(self._past):
                self._middle = np.median(self._past[-BEFORE:], axis=0)
            self._block(clean[at:stop], allowed[at:stop], ended)
            at = stop
        return Recognised(clean, allowed, ended)

    def finish(self) -> list[Stretch]:
        """The patterns under way when the rows end."""
        return [found for each in self._followers for found in self._over(each)]

    def _over(self, follower: Follower) -> list[Stretch]:
        rows = follower.end()
        if rows is None:
            return []
        pattern = follower.pattern
        return [Stretch(pattern.id, *rows, pattern.channels, pattern.allowance)]

    def _block(self, rows: Array, allowed: Array, ended: list[Stretch]) -> None:
        """Clean a few rows in place, and set what is allowed there."""
        gone = missing_cells(rows)
        busy = self._first_busy(rows)
        keep = self._period + BEFORE + LEAD
        for i, (row, missing) in enumerate(zip(rows, gone, strict=True)):
            self._relax_rows = max(0, self._relax_rows - 1)
            if i >= busy:
                self._row(row, missing, ended)
            allowed[i] = self._allowed(np.where(missing, np.nan, row))
            self._last = np.where(missing, self._last, row)
            self._past = np.concatenate([self._past, self._last[None]])[-keep:]
            self._n += 1

    def _first_busy(self, rows: Array) -> int:
        """The first row that a pattern may concern."""
        if any(each.active for each in self._followers):
            return 0
        first = len(rows)
        for each in self._followers:
            each.frame(self._middle[each.columns])
            away = np.abs(rows[:, each.columns] - each.middle) >= START * each.unit  # NaN is not
            first = min([first, *np.flatnonzero(away.any(axis=1))[:1].tolist()])
        for each in self._followers:
            each.rested = each.rested or first > 0
        return first

    def _row(self, row: Array, missing: NDArray[np.bool_], ended: list[Stretch]) -> None:
        """Clean one row in place: of patterns that share a channel, the nearest one counts."""
        given = np.where(missing, np.nan, row)
        found = []
        for each in self._followers:
            off = self._follow(each, given[each.columns], ended)
            if off is not None:
                found.append((off, each))
        if found:
            most = max(each.pattern.allowance for _, each in found)
            self._relax_factor = max(most, self._relax_factor) if self._relax_rows else most
            self._relax_rows = self._period
        used: set[int] = set()
        known = np.where(missing, self._last, row)
        for _, each in sorted(found, key=lambda one: one[0]):
            columns = each.columns
            if not used & set(columns.tolist()):
                used |= set(columns.tolist())
                baseline = (
                    self._baseline(known, self._past, each) + each.lead * RETURN**each.elapsed
                )
                row[columns] = np.where(missing[columns], row[columns], baseline)

    def _allowed(self, row: Array) -> float:
        """Evidence over its limit that is tolerated at a row; without limit where one may begin."""
        if self._relax_rows:
            return self._relax_factor
        begins = any(each.may_begin(row[each.columns]) for each in self._followers)
        self._held = self._held + 1 if begins else 0
        return float("inf") if 0 < self._held <= LEAD else 1.0

    def _follow(self, follower: Follower, row: Array, ended: list[Stretch]) -> float | None:
        """How far a row lies off its place in a pattern, 0 to 1; None where it has none."""
        if follower.active:
            off = follower.step(row, self._n)
            if off is not None:
                return off
            ended += self._over(follower)
        follower.frame(self._middle[follower.columns])
        off = follower.step(row, self._n)
        if off is not None:
            self._begun(follower)
        return off

    # ---------------------------------------------------------------- the baseline

    def _begun(self, follower: Follower) -> None:
        """A pattern has become clear: see to the rows just before, which may belong to it."""
        now = np.median(self._past[-BEFORE:], axis=0) if len(self._past) else self._normal.mean
        then = self._past[: max(0, len(self._past) - self._period)][-BEFORE:]
        follower.shift = np.zeros(len(follower.columns))
        follower.lead = np.zeros(len(follower.columns))
        if not len(then):
            return
        before = np.median(then, axis=0)
        follower.shift = self._rest(now, follower) - self._rest(before, follower)
        for k in range(min(LEAD, len(self._past) - 1), 0, -1):
            away = np.abs(self._past[-k, follower.columns] - follower.middle) / follower.unit
            if away.max() < 0.5:
                continue
            baseline = self._baseline(self._past[-k], self._past[:-k], follower)
            if k == 1:
                follower.lead = self._past[-1, follower.columns] - baseline
            self._past[-k, follower.columns] = baseline

    def _baseline(self, row: Array, past: Array, follower: Follower) -> Array:
        """What a pattern's channels would show now, (n_columns,).

        What the other channels lead to expect, and what was left of that one period ago.
        """
        if len(past) < self._period:
            return self._expected(row, follower)
        before = past[-self._period]
        return self._expected(row, follower) + self._rest(before, follower) + follower.shift

    def _rest(self, row: Array, follower: Follower) -> Array:
        return np.asarray(row[follower.columns] - self._expected(row, follower))

    def _expected(self, row: Array, follower: Follower) -> Array:
        """What the other channels of a row lead to expect of a pattern's channels."""
        unknown = row.copy()
        unknown[follower.columns] = np.nan
        # The same place of the noise for every row, so that it cancels between two of them.
        return np.asarray(self._normal.rebuild(unknown[None], 0)[0, follower.columns])

    # ------------------------------------------------------------------- state

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        found: dict[str, NDArray[Any]] = {
            "past": self._past,
            "last": self._last,
            "middle": self._middle,
            "n": np.array([self._n, self._relax_rows, self._held]),
            "allow": np.array([self._relax_factor]),
        }
        for i, each in enumerate(self._followers):
            found |= {f"{i}.{name}": array for name, array in each.state().items()}
        return found

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back the state of a recogniser of the same patterns."""
        self._past, self._last, self._middle = (state[k] for k in ("past", "last", "middle"))
        self._n, self._relax_rows, self._held = (int(x) for x in state["n"])
        self._relax_factor = float(state["allow"][0])
        for i, each in enumerate(self._followers):
            start = f"{i}."
            each.resume({k.removeprefix(start): v for k, v in state.items() if k.startswith(start)})
