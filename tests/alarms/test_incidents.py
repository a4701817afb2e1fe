"""One rule of what makes an incident, for alarms as they open and for events that have ended."""

from __future__ import annotations

from vace_ad.alarms.incidents import Grouping


def groups(grouping: Grouping, *events: tuple[int, int | None]) -> list[str]:
    return [grouping.join(str(i), f"m{i}", start, end).id for i, (start, end) in enumerate(events)]


def test_an_event_joins_while_nine_tenths_go_on() -> None:
    assert groups(Grouping(), (0, 10), (5, 20), (10, 30), (11, 40)) == ["0", "0", "0", "3"]
    many = [(0, 50)] * 10 + [(0, 1), (2, 60)]
    assert groups(Grouping(), *many) == ["0"] * 12


def test_without_ends_the_time_of_the_first_counts() -> None:
    assert groups(Grouping(60), (0, None), (60, None), (61, None)) == ["0", "0", "2"]
    assert groups(Grouping(), (0, None), (10**12, None)) == ["0", "0"]
    assert groups(Grouping(0), (0, None), (0, None)) == ["0", "1"]


def test_an_old_incident_is_joined_by_what_a_replay_brings_late() -> None:
    assert groups(Grouping(60), (0, None), (100, None), (30, None)) == ["0", "1", "0"]
