"""The lifecycle of alarms: open, update, resolve; an alarm keeps its id over a restart.

`vace_ad.alarms.feed` gives the events of one stream. An alarm joins the events of an entity that
follow each other within `resolve_after`, and also covers missing data and missing scores.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from vace_ad.alarms.events import Reading, reading_words
from vace_ad.alarms.severity import level
from vace_ad.live.config import AlarmSettings
from vace_ad.live.records import read_time

ANOMALY, NO_DATA, NO_SCORE = "anomaly", "no data", "no score"
_CHANNELS = 5  # named in a message
_READ = 3  # of them, those told with their value and what was expected
_PATTERNS = 8  # kept of one alarm


@dataclass
class Alarm:
    """An alarm of an entity; times in nanoseconds."""

    id: str
    entity: str  # "" is the source itself
    kind: str  # ANOMALY, NO_DATA or NO_SCORE
    channel: str  # the sensor that is silent, else ""
    onset: int
    events: list[str] = field(default_factory=list)  # of the stream, still open
    quiet: int | None = None  # since when no event is open
    resolved: int | None = None
    revision: int = 0  # messages so far
    sent: int = 0  # time of the rows at the last message
    severity: float | None = None
    score: float | None = None
    signal: str | None = None
    probability: float | None = None  # alarms a row, in normal operation, that are as strong
    normal_rows: int | None = None  # that the probability is learned from
    shares: list[tuple[str, float]] = field(default_factory=list)
    readings: list[list[Any]] = field(default_factory=list)  # channel, value, low, high at the peak
    partner: str | None = None  # the channel that the first suspect no longer goes with
    lasting: bool = False  # ended because a lasting change became the new normal
    patterns: list[Any] = field(default_factory=list)  # of its events that have ended
    reason: str | None = None  # why rows have no score, and what to do

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Alarm:
        """An alarm from the last message about it, if nothing else is left."""
        return cls(
            body["alarm"], body["entity"], body["kind"], body["channel"],
            read_time(body["onset"]), revision=int(body["id"].rpartition(".")[2]),
            sent=read_time(body["time"]), severity=body["severity"], score=body["score"],
            signal=body["signal"], shares=[(one["name"], one["share"]) for one in body["channels"]],
            probability=body.get("probability"), normal_rows=body.get("normal_rows"),
            readings=[list(one.values()) for one in body.get("readings", ())],
            partner=body.get("partner"), lasting=body.get("lasting", False),
            reason=body.get("reason"),
        )  # fmt: skip

    def gist(self) -> tuple[Any, ...]:
        """What makes an update when it changes."""
        return (
            self.severity and round(self.severity),
            self.signal,
            self.shares and self.shares[0][0],
        )


class Message(NamedTuple):
    """A message about an alarm, for every sink."""

    id: str
    what: str  # open, update, resolve
    alarm: Alarm
    time: int


class Lifecycle:
    """The alarms of one entity. Events that come while an alarm is open join it."""

    def __init__(self, entity: str, rules: AlarmSettings) -> None:
        self._entity, self._rules = entity, rules
        self.open: dict[tuple[str, str], Alarm] = {}  # by kind and channel
        self._heard = -(2**63)  # missing data up to this time has been reported

    def changes(self, changes: Sequence[Any], now: int, origin: int) -> list[Message]:
        """Changes of a stream's events; `now` is its last row's time, `origin` its first's."""
        messages = []
        for change in changes:
            event = change.event
            if change.what == "accepted":
                continue  # like an event that was called normal: no alarm
            if event.kind == NO_DATA:
                messages += self._no_data(change.what, event, now, origin)
                continue
            alarm = self.open.get((ANOMALY, ""))
            gist = alarm.gist() if alarm else None
            if alarm is None:
                if change.what != "open":
                    continue  # of an alarm that a person or a longer silence has closed
                alarm = Alarm(
                    identity(self._entity, str(origin), str(event.id)),
                    self._entity, ANOMALY, "", _time(event.start_time, now),
                )  # fmt: skip
                self.open[ANOMALY, ""] = alarm
            _merge(alarm, event)
            if change.what == "resolve":
                pattern = getattr(change, "pattern", None)
                if pattern is not None and len(alarm.patterns) < _PATTERNS:
                    alarm.patterns.append(pattern.to_plain())
                alarm.events = [one for one in alarm.events if one != str(event.id)]
                if not alarm.events:
                    alarm.quiet = _time(event.end_time, now)
            elif str(event.id) not in alarm.events:
                alarm.events.append(str(event.id))
                alarm.quiet = None
            if gist is None:
                messages.append(self._message(alarm, "open", now))
            elif gist != alarm.gist() and now - alarm.sent >= self._rules.update_every:
                messages.append(self._message(alarm, "update", now))
        return messages + self.tick(now)

    def normal(self, id: str, now: int) -> list[Message]:
        """Resolve the open alarm of this id: a person called it normal."""
        alarm = self.open.get((ANOMALY, ""))
        return [self._resolve(alarm, now)] if alarm is not None and alarm.id == id else []

    def leave(self, now: int) -> list[Message]:
        """Resolve all: the entity is removed, or another process watches it."""
        return [self._resolve(alarm, now) for alarm in list(self.open.values())]

    def tick(self, now: int) -> list[Message]:
        """Resolve the anomaly if no event was open for long enough."""
        alarm = self.open.get((ANOMALY, ""))
        if alarm is None or alarm.quiet is None or now - alarm.quiet < self._rules.resolve_after:
            return []
        return [self._resolve(alarm, now)]

    def _no_data(self, what: str, event: Any, now: int, origin: int) -> list[Message]:
        """Missing rows found by the stream, unless they were reported before."""
        start, after = _time(event.start_time, now), self._rules.silence_after
        alarm = self.open.get((NO_DATA, ""))
        if what == "resolve":
            return [self._resolve(alarm, now)] if alarm and str(event.id) in alarm.events else []
        if after is None or alarm is not None or start <= self._heard or now - start < after:
            return []
        alarm = Alarm(
            identity(self._entity, str(origin), str(event.id), NO_DATA),
            self._entity, NO_DATA, "", start, [str(event.id)],
        )  # fmt: skip
        self.open[NO_DATA, ""] = alarm
        return [self._message(alarm, "open", now)]

    def silent(
        self, since: int, now: int, channel: str = "", *, reason: str | None = None
    ) -> list[Message]:
        """No data since a time, from the entity or from one of its channels.

        With a `reason`, rows come and have no score.
        """
        kind = NO_DATA if reason is None else NO_SCORE
        if (kind, channel) in self.open:
            return []
        name = identity(self._entity, kind, channel, str(since))
        alarm = Alarm(name, self._entity, kind, channel, since, reason=reason)
        self.open[kind, channel] = alarm
        return [self._message(alarm, "open", now)]

    def channels(
        self, now: int, read: Sequence[str], heard: dict[str, int], *, off: bool = False
    ) -> list[Message]:
        """Missing data of single channels; `heard`: time of the last reading of each, updated.

        A sensor of a machine that is `off` may be without power.
        """
        after = self._rules.silence_after
        if after is None:
            return []
        messages = []
        for channel in read:
            heard[channel] = now
            if self.open:
                messages += self.heard(now, channel)
        if (
            0 < len(read) < len(heard) and not off
        ):  # an empty row is the entity's silence, not theirs
            for channel, time in heard.items():
                if now - time >= after:
                    messages += self.silent(time, now, channel)
        return messages

    @property
    def blind(self) -> str | None:
        """Why no row has a score; None while rows have."""
        alarm = self.open.get((NO_SCORE, ""))
        return None if alarm is None else alarm.reason

    def scored(self, now: int) -> list[Message]:
        """A row has a score again."""
        alarm = self.open.get((NO_SCORE, ""))
        return [] if alarm is None else [self._resolve(alarm, now)]

    def heard(self, now: int, channel: str = "") -> list[Message]:
        """Data has come again."""
        alarm = self.open.get((NO_DATA, channel))
        if alarm is None or alarm.events:
            return []
        if not channel:
            self._heard = max(self._heard, now)
        return [self._resolve(alarm, now)]

    def covered(self, now: int) -> None:
        """Missing data up to now is reported by the alarm of the source."""
        self._heard = max(self._heard, now)

    def _resolve(self, alarm: Alarm, now: int) -> Message:
        alarm.resolved = max(alarm.onset, now)
        del self.open[alarm.kind, alarm.channel]
        return self._message(alarm, "resolve", now)

    def _message(self, alarm: Alarm, what: str, now: int) -> Message:
        alarm.revision += 1
        alarm.sent = now
        frozen = replace(
            alarm,
            events=list(alarm.events),
            shares=list(alarm.shares),
            readings=list(alarm.readings),
            patterns=list(alarm.patterns),
        )
        return Message(f"{alarm.id}.{alarm.revision}", what, frozen, now)

    def state(self) -> dict[str, Any]:
        """The open alarms as plain values, to be written at once: nothing is copied."""
        return {"open": [vars(alarm) for alarm in self.open.values()], "heard": self._heard}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The reverse of `state`."""
        self._heard = state["heard"]
        for values in state["open"]:
            alarm = Alarm(**{**values, "shares": [(n, s) for n, s in values["shares"]]})
            self.open[alarm.kind, alarm.channel] = alarm


def identity(*parts: str) -> str:
    """A short name that the same parts always give."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:20]


def body(message: Message, link: str | None) -> dict[str, Any]:
    """A message as plain values, as sinks send it."""
    alarm = message.alarm
    return {
        "id": message.id,
        "what": message.what,
        "alarm": alarm.id,
        "kind": alarm.kind,
        "entity": alarm.entity,
        "channel": alarm.channel,
        "onset": iso(alarm.onset),
        "time": iso(message.time),
        "resolved": None if alarm.resolved is None else iso(alarm.resolved),
        "severity": alarm.severity,
        "level": "" if alarm.severity is None else level(alarm.severity),
        "unit_score": None if alarm.severity is None else alarm.severity / 100,
        "probability": alarm.probability,
        "normal_rows": alarm.normal_rows,
        "score": alarm.score,
        "signal": alarm.signal,
        "channels": [{"name": name, "share": share} for name, share in alarm.shares],
        "readings": [Reading(*one)._asdict() for one in alarm.readings],
        "partner": alarm.partner,
        "lasting": alarm.lasting,
        "reason": alarm.reason,
        "summary": summary(alarm),
        "link": None if link is None else f"{link}/#alarm={alarm.id}",
    }


def summary(alarm: Alarm) -> str:
    """An alarm in one sentence."""
    who = alarm.entity or "source"
    if alarm.kind == NO_DATA:
        what = f"no data from sensor {alarm.channel}" if alarm.channel else "no data"
    elif alarm.kind == NO_SCORE:
        what = f"no score, so no alarm can come: {alarm.reason}"
    else:
        blamed = ", ".join(f"{name} {share:.0%}" for name, share in alarm.shares[:3])
        what = f"anomaly{f' in {blamed}' if blamed else ''}"
        if alarm.readings:
            what += f" ({reading_words(Reading(*alarm.readings[0]))})"
        if alarm.partner and alarm.shares:
            what += f", {alarm.shares[0][0]} and {alarm.partner} stopped going together"
        if alarm.severity is not None:
            what += f", severity {alarm.severity:.0f} ({level(alarm.severity)})"
        if alarm.reason:
            what += f" ({alarm.reason})"
        if alarm.lasting:
            what += ", ended because a lasting change became the new normal"
    end = "" if alarm.resolved is None else f", resolved {iso(alarm.resolved)}"
    return f"{who}: {what}, since {iso(alarm.onset)}{end}"


def iso(time: int) -> str:
    """Nanoseconds as ISO 8601 in UTC, to the millisecond."""
    try:
        moment = datetime.fromtimestamp(time // 10**6 / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _merge(alarm: Alarm, event: Any) -> None:
    """Take the facts of the strongest event."""
    severity = _number(event.severity)
    if conditions := getattr(event, "conditions", ""):
        alarm.reason = f"conditions outside training: {conditions}"
    stronger = alarm.severity is None or (severity is not None and severity >= alarm.severity)
    if stronger or not alarm.shares:
        alarm.severity = severity if stronger else alarm.severity
        alarm.score = _number(event.score) if stronger else alarm.score
        alarm.signal = event.signal or alarm.signal
        if stronger:
            alarm.probability, alarm.normal_rows = _number(event.probability), event.normal_rows
        alarm.readings = [list(one) for one in event.readings[:_READ]] or alarm.readings
        alarm.partner = event.partner
        if event.shares:
            alarm.shares = [(str(n), float(s)) for n, s in event.shares[:_CHANNELS]]
    alarm.lasting |= event.lasting


def _time(moment: Any, otherwise: int) -> int:
    if moment is None or np.isnat(moment):
        return otherwise
    return int(np.datetime64(moment, "ns").astype(np.int64))


def _number(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
