"""Alarms while rows come: opened, updated and resolved, from provisional scores alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarming import Alarming
from vace_ad.alarms.blame import blame, suspicion
from vace_ad.alarms.events import ACCEPTED, Event
from vace_ad.alarms.pattern import BEFORE, Pattern
from vace_ad.alarms.recognise import Stretch
from vace_ad.alarms.refine import REACH, loudest_stretch, row_evidence
from vace_ad.alarms.severity import chance, severity
from vace_ad.signals.rows import RowBuffer

Array = NDArray[np.float64]

RECENT = 256  # rows kept to date and blame an alarm by
LONGEST = 4_096  # rows of an open event that are kept to know the like again


@dataclass(frozen=True)
class Change:
    """What became of an event."""

    what: Literal["open", "update", "resolve", "accepted"]  # accepted: no alarm, for the record
    event: Event
    # of an event that has ended: how its channels left their past
    pattern: Pattern | None = field(default=None, compare=False)
    row: int | None = field(default=None, compare=False)  # that brought it; None: no single one


class AlarmFeed:
    """Judges provisional scores row by row and keeps the alarm that is open."""

    def __init__(self, alarming: Alarming) -> None:
        self._alarming = alarming
        self._watcher = alarming.watcher(provisional=True)
        self._n = 0  # rows seen
        self.threshold: float | None = None  # of the last row, as a score
        # The last RECENT rows, as they came, and their times.
        self._last_rows = RowBuffer(len(alarming.model.channels))
        self._last_times = RowBuffer(1, "datetime64[ns]")
        self._rows, self._times = self._recent(0)
        self._open: Event | None = None
        self._last = 0  # the last row above the threshold
        self._hushed = False  # whether a person called the open event normal
        self._kept: list[Array] = []  # rows from a little before the open event on
        self._first_kept = 0  # the number of the first of them

    def add(
        self,
        rows: Array,  # (n, n_channels)
        times: NDArray[np.datetime64] | None,  # (n,)
        scores: Array,  # (n,), provisional
        signals: Sequence[str | None],  # the loudest evidence of each row
        borne: Array | None = None,  # (n,), evidence over threshold that accepted patterns may have
    ) -> tuple[Change, ...]:
        """What the next rows change."""
        if times is None:
            times = np.full(len(rows), np.datetime64("NaT", "ns"))
        for buffer, new in ((self._last_rows, rows), (self._last_times, times[:, None])):
            buffer.keep(RECENT)
            buffer.add(new)
        changes = []
        limits = self._watcher.add(scores)
        judged = limits.ratio
        self.threshold = float(limits.limit[-1]) if len(limits.limit) else self.threshold
        judged = judged if borne is None else judged / borne
        for i, (ratio, score) in enumerate(zip(judged.tolist(), scores.tolist(), strict=True)):
            if ratio > 1 or self._open is not None:
                self._rows, self._times = self._recent(len(rows) - 1 - i)
                if self._kept and len(self._kept) < LONGEST:
                    self._kept.append(rows[i])
                change = self._step(ratio, score, signals[i])
                if change is not None and not (self._hushed and change.what != "accepted"):
                    changes.append(replace(change, row=self._n))
            self._n += 1
        self._rows, self._times = self._recent(0)
        return tuple(changes)

    def _recent(self, later: int) -> tuple[Array, NDArray[np.datetime64]]:
        """The last RECENT rows and their times before the `later` rows that came after them."""
        rows, times = (x.last(RECENT + later) for x in (self._last_rows, self._last_times))
        n = len(rows) - later
        return rows[:n][-RECENT:], times[:n, 0][-RECENT:]

    def finish(self) -> tuple[Change, ...]:
        """Resolve what is open at the end."""
        if self._open is None:
            return ()
        return (self._resolve(),)

    def hush(self) -> None:
        """What is open is normal: it says no more, and ends as accepted."""
        self._hushed = self._open is not None

    def accepted(self, stretch: Stretch) -> Change:
        """A stretch that was recognised as accepted has ended, for the record."""
        event = stretch.event()
        first = self._n - len(self._times)
        if stretch.start >= first:
            start, end = stretch.start - first, stretch.end - 1 - first
            stamps = [None if np.isnat(x) else x for x in self._times[[start, end]]]
            event = replace(event, start_time=stamps[0], end_time=stamps[1])
        return Change("accepted", event)

    def _step(self, ratio: float, score: float, signal: str | None) -> Change | None:
        """One row against its threshold."""
        if ratio > 1:
            self._last = self._n
            if self._open is None:
                self._open = self._event(ratio, score, signal)
                kept = min(len(self._rows), self._n + 1 - self._open.start + BEFORE + REACH)
                self._kept = list(self._rows[len(self._rows) - kept :].copy())
                self._first_kept = self._n + 1 - kept
                return Change("open", self._open)
            louder = ratio > self._open.ratio
            before = self._open.level
            self._open = replace(self._open, end=self._n + 1, end_time=self._time(self._n))
            if louder:
                self._open = self._stronger(ratio, score, signal)
            return Change("update", self._open) if self._open.level != before else None
        if self._open is not None and self._n - self._last > self._alarming.rules.join:
            return self._resolve()
        return None

    def _resolve(self) -> Change:
        assert self._open is not None
        event, self._open = self._open, None
        what: Literal["resolve", "accepted"] = "accepted" if self._hushed else "resolve"
        pattern = self._pattern(event)
        self._kept, self._hushed = [], False
        return Change(what, replace(event, kind=ACCEPTED) if what == "accepted" else event, pattern)

    def _pattern(self, event: Event) -> Pattern | None:
        """How the channels of an event left their past; None where it is too long to keep."""
        model, rows = self._alarming.model, (event.start, event.end)
        if rows[1] - self._first_kept > len(self._kept):
            return None
        at = max(0, rows[0] - self._first_kept), rows[1] - self._first_kept
        kept = np.array(self._kept)
        return Pattern.of(
            event.id, kept, at, model.channels, model.normal, model.wander, event.ratio
        )

    def _event(self, ratio: float, score: float, signal: str | None) -> Event:
        """An alarm that begins now; its fault may have begun some rows ago."""
        model, first = self._alarming.model, self._n + 1 - len(self._rows)
        here = len(self._rows) - 1
        low = max(0, here - REACH)
        evidence = row_evidence(self._rows, low, here + 1, here, model)
        found = loudest_stretch(evidence)
        start = self._n if found is None else first + low + found[0]
        event = Event(start, self._n + 1, self._n, alarm=self._n, start_time=self._time(start))
        event = replace(event, end_time=self._time(self._n), alarm_time=self._time(self._n))
        self._open = event
        return self._stronger(ratio, score, signal)

    def _stronger(self, ratio: float, score: float, signal: str | None) -> Event:
        """The open event with its new peak, and the channels that it is due to."""
        assert self._open is not None
        alarming, model, first = self._alarming, self._alarming.model, self._n + 1 - len(self._rows)
        rate = alarming.rate or 1e-4
        rare = chance(ratio, rate, model.calibration.spacing)
        start = max(self._open.start - first, 0)
        found = suspicion(
            self._rows, start, len(self._rows), model.normal, model.wander, model.period
        )
        named = blame(model.channels, found)
        return replace(
            self._open,
            peak=self._n,
            peak_time=self._time(self._n),
            score=score,
            ratio=ratio,
            probability=rare,
            severity=severity(rare, rate),
            shares=named.top(len(named.names)),
            signal=signal,
        )

    def _time(self, row: int) -> np.datetime64 | None:
        stamp = self._times[row - (self._n + 1 - len(self._times))]
        return None if np.isnat(stamp) else stamp

    # ------------------------------------------------------------------- state

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        found = {f"watcher.{name}": array for name, array in self._watcher.state().items()}
        found |= {
            "rows": self._rows.copy(),
            "times": self._times.copy().view(np.int64),
            "counts": np.array([self._n, self._last, self._open is not None]),
        }
        if self._kept:
            found["kept"] = np.array(self._kept)
            found["hushed"] = np.array([self._first_kept, self._hushed])
        return found

    def description(self) -> dict[str, Any] | None:
        """The open event as plain values; None without one."""
        if self._open is None:
            return None
        event = self._open
        plain = {name: getattr(event, name) for name in _PLAIN}
        stamps = {name: _stamp(getattr(event, name)) for name in _STAMPS}
        return {**plain, **stamps, "shares": [list(pair) for pair in event.shares]}

    def resume(self, state: Mapping[str, NDArray[Any]], event: Mapping[str, Any] | None) -> None:
        """Take back a state."""
        own = {k.removeprefix("watcher."): v for k, v in state.items() if k.startswith("watcher.")}
        self._watcher.resume(own)
        rows, times = state["rows"], state["times"].view("datetime64[ns]")
        if rows.shape != (len(times), len(self._alarming.model.channels)):
            raise ValueError(f"its last rows have the shape {rows.shape}")
        self._last_rows.refill(rows.copy())
        self._last_times.refill(times[:, None].copy())
        self._rows, self._times = self._recent(0)
        self._n, self._last = int(state["counts"][0]), int(state["counts"][1])
        if "kept" in state:
            self._kept = list(state["kept"])
            self._first_kept, self._hushed = int(state["hushed"][0]), bool(state["hushed"][1])
        if event is not None:
            fields: dict[str, Any] = {name: event[name] for name in _PLAIN}
            fields |= {name: _moment(event[name]) for name in _STAMPS}
            shares = tuple((str(name), float(share)) for name, share in event["shares"])
            self._open = Event(**fields, shares=shares)


_PLAIN = (
    "start", "end", "peak", "kind", "score", "ratio", "probability", "severity", "alarm", "signal",
)  # fmt: skip
_STAMPS = ("start_time", "end_time", "peak_time", "alarm_time")


def _stamp(time: np.datetime64 | None) -> int | None:
    return None if time is None else int(time.astype("datetime64[ns]").astype(np.int64))


def _moment(stamp: int | None) -> np.datetime64 | None:
    return None if stamp is None else np.datetime64(stamp, "ns")
