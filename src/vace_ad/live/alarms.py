"""The lifecycle of alarms: open, update, resolve; an alarm keeps its id over a restart.

`vace_ad.alarms.feed` gives the events of one stream, and what is known of each. An alarm joins the
events of an entity that follow each other within `resolve_after` and is described by the strongest
of them. There are also alarms for missing data and missing scores.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vace_ad.alarms.events import (
    ANOMALY,
    BECAME_NORMAL,
    NO_DATA,
    Event,
    Reading,
    pair_words,
    reading_words,
)
from vace_ad.live.records import read_time
from vace_ad.live.sections import AlarmSettings

if TYPE_CHECKING:
    from vace_ad.alarms.alarm_stream import Change

NO_SCORE = "no score"
_CHANNELS = 5  # named in a message
_READ = 3  # of them, how many with value and expected value
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
    event: Event | None = None  # the strongest of its events
    patterns: list[Any] = field(default_factory=list)  # of its events that have ended
    reason: str | None = None  # why rows have no score, and what to do

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Alarm:
        """An alarm from the last message about it, if nothing else is left."""
        shares = [(one["name"], one["share"]) for one in body["channels"]]
        readings = [list(one.values()) for one in body.get("readings", ())]
        return cls(
            body["alarm"], body["entity"], body["kind"], body["channel"],
            read_time(body["onset"]), revision=int(body["id"].rpartition(".")[2]),
            sent=read_time(body["time"]), reason=body.get("reason"),
            event=_event({**body, "shares": shares, "readings": readings}),
        )  # fmt: skip

    def headline(self) -> tuple[Any, ...]:
        """The part of an alarm whose change is worth an update message."""
        severity, signal, shares = (_facts(self.event)[name] for name in _HEADLINE)
        return severity and round(severity), signal, shares and shares[0][0]


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

    def changes(
        self, changes: Sequence[Change], now: int, origin: int, *, settling: bool = False
    ) -> list[Message]:
        """Changes of a stream's events; `now` is its last row's time, `origin` its first's.

        While a deploy is `settling`, no anomaly opens.
        """
        messages = []
        for change in changes:
            event = change.event
            if change.what == "accepted":
                continue  # like an event that was called normal: no alarm
            alarm = self.anomaly
            headline = alarm.headline() if alarm else None
            if alarm is None:
                if change.what not in ("open", "wake") or settling:
                    continue  # of an alarm that a person or a longer silence has closed
                awake = change.what == "wake"  # its first alarm was resolved
                onset = now if awake else _time(event.start_time, now)
                again = (str(now),) if awake else ()
                name = identity(self._entity, str(origin), event.id, *again)
                alarm = Alarm(name, self._entity, ANOMALY, "", onset)
                self.open[ANOMALY, ""] = alarm
            alarm.event = _stronger(alarm.event, event)
            if event.conditions:
                alarm.reason = f"conditions outside training: {event.conditions}"
            if change.what in ("rest", "resolve"):
                rested = change.what == "resolve" and event.id not in alarm.events
                pattern = change.pattern
                if pattern is not None and not rested and len(alarm.patterns) < _PATTERNS:
                    alarm.patterns.append(pattern.to_plain())
                alarm.events = [one for one in alarm.events if one != event.id]
                if not alarm.events:  # at rest: nothing came for that long
                    rest = now - self._rules.resolve_after
                    alarm.quiet = rest if change.what == "rest" else _time(event.end_time, now)
            elif event.id not in alarm.events:
                alarm.events.append(event.id)
                alarm.quiet = None
            if headline is None:
                messages.append(self._message(alarm, "open", now))
            elif headline != alarm.headline() and now - alarm.sent >= self._rules.update_every:
                messages.append(self._message(alarm, "update", now))
        return messages + self.tick(now)

    @property
    def anomaly(self) -> Alarm | None:
        """The open anomaly."""
        return self.open.get((ANOMALY, ""))

    def detach_events(self, now: int) -> None:
        """The stream starts new events here: those of an open anomaly have ended."""
        alarm = self.anomaly
        if alarm is not None and alarm.events:
            alarm.events, alarm.quiet = [], now

    def normal(self, id: str, now: int) -> list[Message]:
        """Resolve the open alarm of this id: a person called it normal."""
        alarm = self.anomaly
        return [self._resolve(alarm, now)] if alarm is not None and alarm.id == id else []

    def resolve_all(self, now: int) -> list[Message]:
        """Resolve all: the entity is removed, or another process watches it."""
        return [self._resolve(alarm, now) for alarm in list(self.open.values())]

    def tick(self, now: int) -> list[Message]:
        """Resolve the anomaly if no event was open for long enough."""
        alarm = self.anomaly
        if alarm is None or alarm.quiet is None or now - alarm.quiet < self._rules.resolve_after:
            return []
        return [self._resolve(alarm, now)]

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
        # An empty row is the entity's silence, not that of its channels.
        if 0 < len(read) < len(heard) and not off:
            for channel, time in heard.items():
                if now - time >= after:
                    messages += self.silent(time, now, channel)
        return messages

    @property
    def no_score_reason(self) -> str | None:
        """Why no row has a score; None while rows have."""
        alarm = self.open.get((NO_SCORE, ""))
        return None if alarm is None else alarm.reason

    def heard(self, now: int, channel: str = "", *, kind: str = NO_DATA) -> list[Message]:
        """Data has come again, or with NO_SCORE: a row has a score again."""
        alarm = self.open.get((kind, channel))
        return [] if alarm is None else [self._resolve(alarm, now)]

    def _resolve(self, alarm: Alarm, now: int) -> Message:
        alarm.resolved = max(alarm.onset, now)
        del self.open[alarm.kind, alarm.channel]
        return self._message(alarm, "resolve", now)

    def _message(self, alarm: Alarm, what: str, now: int) -> Message:
        alarm.revision += 1
        alarm.sent = now
        frozen = replace(alarm, events=list(alarm.events), patterns=list(alarm.patterns))
        return Message(f"{alarm.id}.{alarm.revision}", what, frozen, now)

    def state(self) -> dict[str, Any]:
        """The open alarms as plain values, to be written at once: nothing is copied."""
        alarms = [{**vars(alarm), **_facts(alarm.event)} for alarm in self.open.values()]
        for one in alarms:
            del one["event"]
        return {"open": alarms}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The reverse of `state`."""
        for values in state["open"]:
            own = {name: values[name] for name in values if name not in _FACTS}
            alarm = Alarm(**own, event=_event(values))
            self.open[alarm.kind, alarm.channel] = alarm


def identity(*parts: str) -> str:
    """A short name that the same parts always give."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:20]


def body(message: Message, link: str | None) -> dict[str, Any]:
    """A message as plain values, as sinks send it."""
    alarm, facts = message.alarm, _facts(message.alarm.event)
    shares, readings = facts.pop("shares"), facts.pop("readings")
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
        **facts,
        "level": "" if alarm.event is None else alarm.event.level,
        "unit_score": facts["severity"] and facts["severity"] / 100,
        "channels": [{"name": name, "share": share} for name, share in shares],
        "readings": [Reading(*one)._asdict() for one in readings],
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
        what = f"anomaly{'' if alarm.event is None else _words(alarm.event, alarm.reason)}"
    end = "" if alarm.resolved is None else f", resolved {iso(alarm.resolved)}"
    return f"{who}: {what}, since {iso(alarm.onset)}{end}"


def iso(time: int) -> str:
    """Nanoseconds as ISO 8601 in UTC, to the millisecond."""
    try:
        moment = datetime.fromtimestamp(time // 10**6 / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _words(event: Event, reason: str | None) -> str:
    """The strongest event in words."""
    blamed = ", ".join(f"{name} {share:.0%}" for name, share in event.shares[:3])
    where = f" in {blamed}" if blamed else ""
    where += f" ({reading_words(event.readings[0])})" if event.readings else ""
    level = f"severity {event.severity:.0f} ({event.level})" if event.level else ""
    lasting = BECAME_NORMAL if event.lasting else ""
    return ", ".join([where, *filter(None, (pair_words(event), level, reason, lasting))])


def _stronger(known: Event | None, event: Event) -> Event:
    """The event to report: the stronger one, with what only the other one has."""
    event = replace(event, shares=event.shares[:_CHANNELS], readings=event.readings[:_READ])
    if known is None:
        return event
    rises = event.severity >= known.severity or math.isnan(known.severity)
    lead, other = (event, known) if rises else (known, event)
    lasting = known.lasting or event.lasting
    if not rises and known.shares:
        return replace(known, lasting=lasting)
    return replace(
        lead, lasting=lasting, shares=lead.shares or other.shares, partner=event.partner,
        readings=event.readings or known.readings, signal=event.signal or known.signal,
    )  # fmt: skip


# Of an event, what messages tell and states keep.
_NUMBERS = ("severity", "score", "probability")
_HEADLINE = ("severity", "signal", "shares")
_FACTS = (*_NUMBERS, "signal", "normal_rows", "shares", "readings", "partner", "lasting")


def _facts(event: Event | None) -> dict[str, Any]:
    """The fields of an event for messages and states; None for a number that is not known."""
    facts = {name: getattr(event or Event(0, 0, 0), name) for name in _FACTS}
    numbers = {name: float(facts[name]) for name in _NUMBERS if math.isfinite(facts[name])}
    return {**facts, **dict.fromkeys(_NUMBERS), **numbers}


def _event(facts: Mapping[str, Any]) -> Event | None:
    """The reverse of `_facts`; None where nothing is known."""
    known: dict[str, Any] = {name: facts.get(name) for name in _FACTS}
    if known["severity"] is None and not known["shares"]:
        return None
    known |= {name: math.nan for name in _NUMBERS if known[name] is None}
    known["shares"] = tuple((str(name), float(share)) for name, share in known["shares"])
    known["readings"] = tuple(Reading(*one) for one in known["readings"])
    return Event(0, 0, 0, **{**known, "lasting": bool(known["lasting"])})


def _time(moment: np.datetime64 | None, otherwise: int) -> int:
    if moment is None or np.isnat(moment):
        return otherwise
    return int(moment.astype("datetime64[ns]").astype(np.int64))
