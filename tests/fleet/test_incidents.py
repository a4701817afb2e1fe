from __future__ import annotations

from typing import Any

import pytest

from vace_ad.fleet.entities import MachineRow
from vace_ad.fleet.incidents import find_incidents, short_span, short_time


def event(start: int, end: int, severity: float = 50.0, offset: str = "") -> dict[str, Any]:
    stamps = [
        f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00.000000000{offset}"
        for minute in (start, end)
    ]
    return {
        "kind": "anomaly",
        "start": start,
        "end": end,
        "start_time": stamps[0],
        "end_time": stamps[1],
        "severity": severity,
        "shares": {"flow": 1.0},
    }


def row(machine: str, *events: dict[str, Any]) -> MachineRow:
    return MachineRow(machine, "ok", events=events)


def test_events_at_the_same_time_are_one_incident() -> None:
    rows = [
        row("a", event(10, 20, 40), event(100, 110, 10)),
        row("b", event(15, 30, 60)),
        row("c", event(20, 35, 20)),
        row("d", event(200, 210, 90)),
    ]
    worst, joint, last = find_incidents(rows)
    assert worst.machines == ["d"]
    assert joint.machines == ["b", "a", "c"]
    assert (joint.events, joint.severity, joint.sensors) == (3, 60, ["flow"])
    assert joint.start.startswith("2026-01-01T00:10")
    assert joint.end.startswith("2026-01-01T00:35")
    assert last.machines == ["a"]


def test_faults_that_overlap_by_chance_are_no_chain() -> None:
    rows = [row(f"m{i}", event(6 * i, 6 * i + 15)) for i in range(60)]
    found = find_incidents(rows)
    assert len(found) == 20
    assert max(len(one.machines) for one in found) == 3


def test_a_few_short_events_do_not_cut_an_incident() -> None:
    rows = [row(f"m{i}", event(i // 10, 30)) for i in range(80)]
    rows += [row(f"s{i}", event(0, 1)) for i in range(2)]
    (found,) = find_incidents(rows)
    assert len(found.machines) == 82


def test_zones_are_compared_in_utc() -> None:
    rows = [row("a", event(60, 70, offset="+01:00")), row("b", event(5, 8, offset="+00:00"))]
    assert len(find_incidents(rows)) == 1
    rows = [row("a", event(60, 70, offset="+01:00")), row("b", event(65, 68, offset="+00:00"))]
    assert len(find_incidents(rows)) == 2


def test_without_time_rows_are_compared() -> None:
    bare = [event(10, 20) | {"start_time": None, "end_time": None} for _ in range(2)]
    assert len(find_incidents([row("a", bare[0]), row("b", bare[1])])) == 1


def test_silence_is_no_incident() -> None:
    assert find_incidents([row("a", event(1, 2) | {"kind": "no data"})]) == []


DAY = "2026-03-01T"


@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        ("2026-03-01T08:35:00.000000000", "2026-03-01 08:35"),
        ("2026-03-01T08:35:00.000000000+01:00", "2026-03-01 08:35 +01:00"),
        ("2026-03-01T08:00:00.000000000-03:30", "2026-03-01 08:00 -03:30"),
        ("2026-03-01T08:35:20.500000000", "2026-03-01 08:35:20.5"),
        ("2026-03-01T00:00:10.000000000", "2026-03-01 00:00:10"),
        ("1200", "1200"),
        ("", ""),
    ],
)
def test_a_time_without_its_zeros(stamp: str, words: str) -> None:
    assert short_time(stamp) == words


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (f"{DAY}08:35:00", f"{DAY}09:57:00", "2026-03-01 08:35 – 09:57"),
        (f"{DAY}08:35:00+01:00", f"{DAY}09:57:00+01:00", "2026-03-01 08:35 – 09:57 +01:00"),
        (f"{DAY}23:00:00", "2026-03-02T01:00:00", "2026-03-01 23:00 – 2026-03-02 01:00"),
        (
            "2026-03-29T01:00:00+01:00",
            "2026-03-29T04:00:00+02:00",
            "2026-03-29 01:00 +01:00 – 2026-03-29 04:00 +02:00",
        ),
        ("700", "740", "700 – 740"),
    ],
)
def test_two_times_as_one_span(start: str, end: str, words: str) -> None:
    assert short_span(start, end) == words
