from types import SimpleNamespace

import numpy as np

from vace_ad.alarms.conditions import Conditions
from vace_ad.alarms.detection import _outdated
from vace_ad.config import VACEConfig
from vace_ad.frames.calendar import Calendar
from vace_ad.frames.idle import IdleRule
from vace_ad.frames.table import Table

NAMES = ("flow", "ambient", "p=a", "p=b")
WATCHED = np.array([True, False, False, False])
TRAIN = np.array([[1.0, 0, 1, 0], [2, 30, 0, 1]])


def words(row):
    return Conditions.fit([TRAIN]).words(np.array([row], float), NAMES, WATCHED)


def test_what_is_outside_training_is_named_with_its_limit() -> None:
    assert words([1, 41, 1, 0]) == "ambient 41, trained to 30"
    assert words([1, -9, 1, 0]) == "ambient -9, trained from 0"
    assert words([1, 20, 0, 0]) == "p with a value never seen"


def test_watched_channels_and_a_tenth_of_the_range_are_no_conditions() -> None:
    assert words([99, 32.9, 1, 0]) == ""
    everything = np.ones(4, bool)
    assert not Conditions.fit([TRAIN]).outside(TRAIN + 99, NAMES, everything).any()


def test_new_normal_rows_widen_the_range() -> None:
    wider = Conditions.fit([TRAIN]).merged([np.array([[1.0, 41, 1, 0]])])
    assert wider.words(np.array([[1.0, 41, 1, 0]]), NAMES, WATCHED) == ""


def test_a_calendar_in_the_past_is_said() -> None:
    time = np.datetime64("2026-03-01", "ns") + np.arange(5) * np.timedelta64(1, "h")
    table = Table(np.zeros((5, 1)), ("a",), time)

    def said(*windows: str, first: int = 0) -> list[str]:
        idle = IdleRule(VACEConfig(maintenance=windows), ("a",))
        return _outdated(SimpleNamespace(idle=idle, calendar=Calendar()), table, first)

    (note,) = said("2026-01-01..2026-01-02", "2026-02-01T06:00..2026-02-01T08:00")
    assert "ended on 2026-02-01 08:00" in note
    assert said() == []
    assert said("2026-01-01..2026-01-02", "2026-03-01T01:00..2026-03-01T02:00") == []
    assert said("2026-03-01T01:00..2026-03-01T02:00", first=3)
    assert said("2026-01-01..2026-01-02", first=5) == []
