"""Alarms while rows come: opened, updated and resolved, from provisional scores alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarming import Alarming
from vace_ad.alarms.blame import blame, suspicion
from vace_ad.alarms.events import Event
from vace_ad.alarms.refine import REACH, loudest_stretch, row_evidence
from vace_ad.alarms.severity import chance, severity

Array = NDArray[np.float64]

RECENT = 256  # rows kept to date and blame an alarm by


@dataclass(frozen=True)
class Change:
    """What became of an event."""

    what: Literal["open", "update", "resolve"]
    event: Event


class AlarmFeed:
    """Judges provisional scores row by row and keeps the alarm that is open."""

    def __init__(self, alarming: Alarming) -> None:
        self._alarming = alarming
        self._watcher = alarming.watcher()
        self._n = 0  # rows seen
        d = len(alarming.model.channels)
        self._rows = np.empty((0, d))  # the last RECENT rows, as they came
        self._times = np.empty(0, "datetime64[ns]")
        self._open: Event | None = None
        self._last = 0  # the last row above the threshold

    def add(
        self,
        rows: Array,  # (n, n_channels)
        times: NDArray[np.datetime64] | None,  # (n,)
        scores: Array,  # (n,), provisional
        signal: str | None,  # the loudest evidence of the newest row
    ) -> tuple[Change, ...]:
        """What the next rows change."""
        ratio = self._watcher.add(scores).ratio
        changes = []
        for i in range(len(rows)):
            stamp = np.datetime64("NaT", "ns") if times is None else times[i]
            self._rows = np.concatenate([self._rows, rows[i : i + 1]])[-RECENT:]
            self._times = np.append(self._times, stamp)[-RECENT:]
            change = self._step(float(ratio[i]), float(scores[i]), signal)
            if change is not None:
                changes.append(change)
            self._n += 1
        return tuple(changes)

    def finish(self) -> tuple[Change, ...]:
        """Resolve what is open at the end."""
        if self._open is None:
            return ()
        return (self._resolve(),)

    def _step(self, ratio: float, score: float, signal: str | None) -> Change | None:
        """One row against its threshold."""
        if ratio > 1:
            self._last = self._n
            if self._open is None:
                self._open = self._event(ratio, score, signal)
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
        return Change("resolve", event)

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
        found = suspicion(self._rows, start, len(self._rows), model.normal, model.wander)
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
            "rows": self._rows,
            "times": self._times.view(np.int64),
            "counts": np.array([self._n, self._last, self._open is not None]),
        }
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
        self._rows, self._times = state["rows"], state["times"].view("datetime64[ns]")
        self._n, self._last = int(state["counts"][0]), int(state["counts"][1])
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
