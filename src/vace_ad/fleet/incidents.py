"""Incidents: events of several machines at the same time are one, with a list.

An event joins an incident while nine tenths of its events are still going on. To overlap with one
of them would not be enough: where there are many machines, faults that have nothing to do with each
other would form a chain without end.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vace_ad.fleet.results import MachineRow
from vace_ad.fleet.time_spans import split_offset

_ENDED = 0.1  # share of an incident's events that may be over when another one joins


@dataclass
class Incident:
    """What happened to one machine, or to several at once."""

    start: str  # as the first machine wrote it
    end: str
    machines: list[str] = field(default_factory=list)  # the most severe first
    events: int = 0
    severity: float = 0.0
    sensors: list[str] = field(default_factory=list)  # most often blamed first


def find_incidents(rows: Iterable[MachineRow]) -> list[Incident]:
    """The incidents of a fleet, the most severe first.

    Events without a time are compared by row, and never with events that have one.
    """
    found: list[Incident] = []
    events = [(row.machine, event) for row in rows for event in row.anomalies]
    for timed in (True, False):
        chosen = [pair for pair in events if (pair[1]["start_time"] is not None) == timed]
        found += _grouped(chosen, timed)
    return sorted(found, key=lambda one: (-one.severity, -len(one.machines)))


def _grouped(events: list[tuple[str, dict[str, Any]]], timed: bool) -> list[Incident]:
    spans = [(*span(event, timed), machine, event) for machine, event in events]
    spans.sort(key=lambda span: span[:2])
    groups: list[list[tuple[str, dict[str, Any]]]] = []
    ends: list[int] = []  # of the last incident's events, sorted
    for start, end, machine, event in spans:
        if not groups or bisect_left(ends, start) > _ENDED * len(ends):
            groups.append([])
            ends = []
        insort(ends, end)
        groups[-1].append((machine, event))
    return [_incident(group, timed) for group in groups]


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


def _incident(group: list[tuple[str, dict[str, Any]]], timed: bool) -> Incident:
    worst: dict[str, float] = {}
    blamed: dict[str, float] = {}
    for machine, event in group:
        worst[machine] = max(worst.get(machine, 0.0), event["severity"] or 0.0)
        for sensor, share in event["shares"].items():
            blamed[sensor] = blamed.get(sensor, 0.0) + (share or 0.0)
    latest = max((event for _, event in group), key=lambda event: span(event, timed)[1])
    first = group[0][1]
    return Incident(
        str(first["start_time"] if timed else first["start"]),
        str(latest["end_time"] if timed else latest["end"]),
        sorted(worst, key=lambda machine: -worst[machine]),
        len(group),
        max(worst.values()),
        sorted(blamed, key=lambda sensor: -blamed[sensor])[:5],
    )
