"""Incidents of a fleet, events of several machines at the same time; machines that vanished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vace_ad.alarms.events import NO_DATA, Event
from vace_ad.alarms.incidents import Grouping
from vace_ad.app.results import event_record, nanoseconds, split_offset
from vace_ad.fleet.entities import MachineRow
from vace_ad.wording import listed


@dataclass
class FleetIncident:
    """Events of one machine, or of several at the same time."""

    start: str  # as the first machine wrote it
    end: str
    machines: list[str] = field(default_factory=list)  # the most severe first
    events: int = 0
    severity: float = 0.0
    sensors: list[str] = field(default_factory=list)  # most often blamed first


def find_incidents(rows: Iterable[MachineRow]) -> list[FleetIncident]:
    """The incidents of a fleet, the most severe first.

    Events without a time are compared by row, and never with events that have one.
    """
    found: list[FleetIncident] = []
    events = [(row.machine, event) for row in rows for event in row.anomalies]
    for timed in (True, False):
        chosen = [pair for pair in events if (pair[1]["start_time"] is not None) == timed]
        found += _grouped(chosen, timed)
    return sorted(found, key=lambda one: (-one.severity, -len(one.machines)))


def _grouped(events: list[tuple[str, dict[str, Any]]], timed: bool) -> list[FleetIncident]:
    spans = [(*span(event, timed), machine, event) for machine, event in events]
    spans.sort(key=lambda span: span[:2])
    grouping, groups = Grouping(), defaultdict[str, list[tuple[str, dict[str, Any]]]](list)
    for i, (start, end, machine, event) in enumerate(spans):
        groups[grouping.join(str(i), machine, start, end).id].append((machine, event))
    return [_incident(group, timed) for group in groups.values()]


def span(event: dict[str, Any], timed: bool) -> tuple[int, int]:
    """First and last moment, in nanoseconds since 1970 or in rows."""
    if not timed:
        return event["start"], event["end"] - 1
    return nanoseconds(event["start_time"]), nanoseconds(event["end_time"])


def _incident(group: list[tuple[str, dict[str, Any]]], timed: bool) -> FleetIncident:
    worst: dict[str, float] = {}
    blamed: dict[str, float] = {}
    for machine, event in group:
        worst[machine] = max(worst.get(machine, 0.0), event["severity"] or 0.0)
        for sensor, share in event["shares"].items():
            blamed[sensor] = blamed.get(sensor, 0.0) + (share or 0.0)
    latest = max((event for _, event in group), key=lambda event: span(event, timed)[1])
    first = group[0][1]
    return FleetIncident(
        str(first["start_time"] if timed else first["start"]),
        str(latest["end_time"] if timed else latest["end"]),
        sorted(worst, key=lambda machine: -worst[machine]),
        len(group),
        max(worst.values()),
        sorted(blamed, key=lambda sensor: -blamed[sensor])[:5],
    )


def short_time(stamp: str) -> str:
    """A time without the zeros at its end; a row's number as it is.

    >>> short_time("2026-03-01T08:35:00.000000000+01:00")
    '2026-03-01 08:35 +01:00'
    """
    clock, offset = split_offset(stamp)
    return f"{_trimmed(clock)} {offset}".rstrip()


def short_span(start: str, end: str) -> str:
    """From one time to another, with what both share said once.

    >>> short_span("2026-03-01T08:35:00+01:00", "2026-03-01T09:57:00+01:00")
    '2026-03-01 08:35 – 09:57 +01:00'
    """
    (first, offset), (last, after) = split_offset(start), split_offset(end)
    first, last = _trimmed(first), _trimmed(last)
    if offset != after:  # the clocks changed in between
        return f"{first} {offset} – {last} {after}"
    day, _, clock = last.partition(" ")
    same = clock and first.startswith(f"{day} ")
    return f"{first} – {clock if same else last} {offset}".rstrip()


def _trimmed(clock: str) -> str:
    clock = clock.replace("T", " ")
    if "." in clock:
        clock = clock.rstrip("0").rstrip(".")
    return clock.removesuffix(":00") if clock.count(":") == 2 else clock


def with_vanished(rows: Sequence[MachineRow]) -> tuple[list[MachineRow], list[str]]:
    """The rows, and a note; machines that vanished have an event from their last row on.

    A machine has vanished when it lacks as many rows at its end as are a gap within.
    """
    stamps = [row.until for row in rows if row.until is not None]
    if not stamps:
        return list(rows), []
    newest = max(stamps, key=nanoseconds)
    judged = [_judged(row, newest) for row in rows]
    gone = [row for row in judged if row.vanished_since]
    if not gone:
        return judged, []
    named = listed([f"{row.machine} since {short_time(row.vanished_since or '')}" for row in gone])
    return judged, [f"no data up to the end of the others: {named}"]


def _judged(row: MachineRow, newest: str) -> MachineRow:
    if row.until is None or row.patience is None:
        return row
    if nanoseconds(newest) - nanoseconds(row.until) <= row.patience:
        return row
    event = event_record(Event(row.rows, row.rows, row.rows, NO_DATA))
    times = {"start_time": row.until, "end_time": newest, "height": None}
    return replace(row, events=(*row.events, {**event, **times}))
