"""Incidents of a fleet: events of several machines at the same time, the most severe first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vace_ad.alarms.incidents import Grouping
from vace_ad.fleet.results import MachineRow
from vace_ad.fleet.time_spans import split_offset


@dataclass
class FleetIncident:
    """What happened to one machine, or to several at once."""

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


def nanoseconds(stamp: str) -> int:
    """Of an ISO time, with or without an offset at its end."""
    clock, offset = split_offset(stamp)
    count = int(np.datetime64(clock, "ns").astype(np.int64))
    if not offset:
        return count
    minutes = int(offset[1:3]) * 60 + int(offset[4:])
    return count - (minutes if offset[0] == "+" else -minutes) * 60 * 10**9


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
