"""The stream of alarms that a model makes of complete rows: evidence in, events out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarm_model import (
    AlarmModel,
    Expected,
    followed_by_baseline,
    line_evidence,
    repeats,
)
from vace_ad.alarms.constants import WARM_UP
from vace_ad.alarms.events import Event
from vace_ad.alarms.evidence import UNIT, Baseline, Nats, whole
from vace_ad.alarms.pattern import OWN, Pattern
from vace_ad.alarms.scan import describe
from vace_ad.alarms.tracked import Notice, What
from vace_ad.alarms.tracker import Tracker
from vace_ad.signals.baseline_model import within
from vace_ad.signals.cells import Residuals
from vace_ad.signals.protocol import prefixed, under

Array = NDArray[np.float64]

MOST_SHARE = 1e10  # of a channel in a row's squared distance from normal


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

    def followed_by(self, other: Taken) -> Taken:
        """What these rows and those after them gave."""
        both = zip(self[1:], other[1:], strict=True)
        return Taken(self.changes + other.changes, *(np.concatenate(pair) for pair in both))


class Judged(NamedTuple):
    """What the alarm stream says of some rows."""

    notices: list[Notice]
    ratio: Array  # (n,), highest evidence over its limit: above 1 is an alarm
    surprise: Array  # (n,), nats of the most surprising cell
    expected: Expected  # by the baseline as it was at each row
    nats: Nats  # (n, n_channels), of each channel's cells


class AlarmStream:
    """Evidence and events along a stream of complete rows, under a budget."""

    def __init__(
        self,
        model: AlarmModel,
        rate: float,
        longest: int | None = None,
        join: int = 0,
        follow: bool = True,
    ) -> None:
        """Settings as those of the tracker; what is over after `longest` rows is normal then."""
        self.model, self._how = model, (rate, longest, join, follow)
        self._cells = model.cells.begin()
        self._baseline = model.baseline()
        self._last: Array | None = None  # the last row
        self._young = WARM_UP  # rows until the averages of the past are filled
        self._quiet = np.zeros(model.n_channels, bool)  # stuck, and taken as normal
        self.accepted = np.zeros(model.n_channels, bool)  # channels of accepted patterns
        self.tracker = Tracker(model.tails, model.n_channels, *self._how)

    def lines_of(self, rows: Array) -> Nats:
        """The evidence of all lines of one stretch without scores, as a stream gives it."""
        self._cells.cut()
        none = np.full(len(rows), np.nan)
        nats, score, _ = self.model.judge(rows, self._cells.add(rows), none, self._baseline)
        nats[:WARM_UP] = 0
        return line_evidence(nats, self.model.stuck * repeats(rows, None), score)

    def restart(self, new_level: bool = False) -> None:
        """Forget alarms and limits, but not the rows: what follows is judged afresh.

        With `new_level`, residuals that left their baseline are normal where they are now.
        """
        if new_level:
            self._baseline.follow_level()
        model, first, rest = self.model, self.tracker.n_rows, self.tracker.rest
        self.tracker = Tracker(model.tails, model.n_channels, *self._how, first=first)
        self.tracker.rest = rest

    def add(
        self, rows: Array, scores: Array | None = None, tolerated: Array | None = None
    ) -> Judged:
        """Take complete rows (n, n_channels).

        `scores` (n,) are their provisional ones, NaN where there is none; `tolerated` (n,) divides
        their evidence, that of `accepted` channels `OWN` times as much.
        """
        if not len(rows):
            none = np.empty(rows.shape, np.int64)
            return Judged([], np.empty(0), np.empty(0), Expected(rows, rows, rows), none)
        residuals = self._cells.add(rows)
        scores = np.full(len(rows), np.nan) if scores is None else scores
        same = repeats(rows, self._last)
        self._last = rows[-1].copy()
        notices: list[Notice] = []
        ratios, surprises, expected, kept = [], [], [], []
        at = 0
        while at < len(rows):
            left = Residuals(*(x[at:] for x in residuals))
            before = copy(self._baseline)  # its arrays are replaced, never written
            nats, score, should = self.model.judge(rows[at:], left, scores[at:], self._baseline)
            stuck = self._stuck(same[at:])
            if len(constant := self.model.cells.constant):
                nats[:, constant] = self._awake(nats[:, constant], same[at:], constant)
            if self._young > at:
                for each in (nats, score):
                    each[: self._young - at] = 0
            if tolerated is not None:
                much = tolerated[at:, None] * np.where(
                    self.accepted & (tolerated[at:, None] > 1), OWN, 1.0
                )
                every = much.max(axis=1, keepdims=True)
                nats = np.asarray(nats / np.tile(much, 2), np.int64)
                stuck = np.asarray(stuck / much, np.int64)
                score = np.minimum(score, np.asarray(score / every, np.int64))  # may be below 0
            lines = line_evidence(nats, stuck, score)
            more, ratio = self.tracker.add(lines, whole(within(left.share, MOST_SHARE)))
            notices += more
            ratios.append(ratio)
            varies = np.tile(self.model.watched, 2)
            most = np.max(nats[: len(ratio)], axis=1, where=varies, initial=0)
            surprises.append(np.maximum(most, stuck[: len(ratio)].max(axis=1)) / UNIT)
            expected.append([each[: len(ratio)] for each in should])
            now, past = np.split(nats[: len(ratio)], 2, axis=1)
            kept.append(now + past)
            self._quiet &= same[at : at + len(ratio)].all(axis=0)
            at += len(ratio)
            if self.tracker.lasted:
                done = Residuals(*(x[: len(ratio)] for x in left))
                self._adopt(before, done, scores[at - len(ratio) : at])
                self._quiet &= same[at - 1]
        self._young = max(self._young - len(rows), 0)
        should = Expected(*(np.concatenate(each) for each in zip(*expected, strict=True)))
        return Judged(
            notices, np.concatenate(ratios), np.concatenate(surprises), should, np.concatenate(kept)
        )

    def _stuck(self, same: NDArray[np.bool_]) -> Nats:
        """Nats of repeated values."""
        return self._awake(self.model.stuck * same, same)

    def _awake(self, nats: Nats, same: NDArray[np.bool_], channels: Any = slice(None)) -> Nats:
        """Nats of some channels, none while the value of one is taken as normal."""
        quiet = self._quiet[channels]
        if quiet.any():
            still = np.logical_and.accumulate(same[:, channels], axis=0) & quiet
            nats = np.where(still, 0, nats)
        return np.asarray(nats, np.int64)

    def _adopt(self, before: Baseline, residuals: Residuals, scores: Array) -> None:
        """What lasted becomes the new baseline, as of the last of these rows."""
        self._baseline = before
        self._baseline.follow(followed_by_baseline(residuals, scores))
        d = self.model.n_channels
        columns: set[int] = set()
        for line in self.tracker.lasted:
            kind, channel = describe(line, d)
            if kind == "stuck" or channel in self.model.cells.constant:
                self._quiet[channel] = True
            else:
                columns |= {2 * d} if channel is None else {channel, d + channel}
        self.tracker.lasted = []
        if columns:
            self._baseline.adopt(np.array(sorted(columns), np.intp))

    def skip(self, n: int) -> list[Notice]:
        """Rows without evidence, or a cut: nothing reaches across."""
        self._cells.cut()
        self._last, self._young = None, WARM_UP
        self._quiet[:] = False
        return self.tracker.skip(n)

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows, but for the open events."""
        none = np.empty((0, self.model.n_channels))
        return {
            **prefixed("cells", self._cells.state()),
            **prefixed("baseline", self._baseline.state()),
            **prefixed("tracker", self.tracker.state()),
            "last": none if self._last is None else self._last[None],
            "quiet": self._quiet,
            "young": np.array([self._young]),
        }

    def resume(self, state: Mapping[str, NDArray[Any]], events: list[dict[str, Any]]) -> None:
        """Take back a state, with the open events as the tracker describes them."""
        self._cells.resume(under("cells", state))
        self._baseline.resume(under("baseline", state))
        self.tracker.resume(under("tracker", state), events)
        last = state["last"]
        if last.shape[1:] != (self.model.n_channels,) or state["quiet"].shape != last.shape[1:]:
            raise ValueError(f"its last row has the shape {last.shape}")
        self._last = last[0].copy() if len(last) else None
        self._quiet = state["quiet"].astype(bool)
        self._young = int(state["young"][0])


def updated(model: AlarmModel, parts: Sequence[Array]) -> AlarmModel:
    """A model with limits that have seen new normal rows too; the cells stay."""
    stream = AlarmStream(model, 1e-9)
    lines = [stream.lines_of(part) for part in parts if len(part)]
    tails = model.tails
    return replace(model, tails=tails.updated(lines, model.n_channels)) if lines else model
