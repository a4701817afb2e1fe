from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vace_ad.alarms.events import (
    NEAR_MISS,
    NO_DATA,
    Event,
    Reading,
    event_columns,
    reading_words,
    with_time,
)

TIME = (np.datetime64("2026-01-01", "ns") + np.arange(10) * np.timedelta64(1, "m")).astype("M8[ns]")
EVENTS = (
    Event(2, 6, 3, score=9.0, ratio=2.0, probability=1e-6, severity=66.0, alarm=3),
    Event(9, 10, 9, score=7.0, ratio=1.2, probability=1e-5, severity=20.0, alarm=9),
)


def test_times_are_those_of_the_rows() -> None:
    event = with_time(EVENTS[0], TIME)
    assert (event.start_time, event.end_time) == (TIME[2], TIME[5])
    assert (event.peak_time, event.alarm_time) == (TIME[3], TIME[3])
    assert with_time(replace(EVENTS[0], alarm=None), TIME).alarm_time is None


def test_a_jump_lies_between_two_rows() -> None:
    jump = with_time(Event(4, 4, 4, NO_DATA), TIME)
    assert (jump.start_time, jump.end_time, jump.rows) == (TIME[3], TIME[4], 0)


def test_without_strength_or_time() -> None:
    event = Event(3, 4, 3)
    assert np.isnan(event.severity)
    assert event.level == ""
    assert event.start_time is None


def test_an_id_stays_while_the_event_lasts() -> None:
    """It hangs on the alarm's row, not on an onset that may be dated anew."""
    event = EVENTS[0]
    assert event.id == replace(event, start=1, end=9, peak=8, score=20.0).id == "anomaly-3"
    assert event.id != EVENTS[1].id
    assert Event(4, 9, 4, NO_DATA).id == "no-data-4"
    assert Event(4, 9, 4, NEAR_MISS).id == "near-miss-4"


@pytest.mark.parametrize(
    ("severity", "word"), [(0.0, "low"), (50.1, "medium"), (70.0, "high"), (99.0, "critical")]
)
def test_severity_in_a_word(severity: float, word: str) -> None:
    assert replace(EVENTS[0], severity=severity).level == word


def test_columns() -> None:
    events = [with_time(event, TIME) for event in EVENTS]
    events[0] = events[0].with_blame([("a", 0.7), ("b", 0.2), ("c", 0.08), ("d", 0.02)], "position")
    columns = event_columns(events)
    assert columns["channels"] == ["a 70%, b 20%, c 8%", ""]
    assert columns["signal"] == ["position", ""]
    assert columns["level"] == ["medium", "low"]
    assert columns["start_time"].dtype == "datetime64[ns]"
    assert columns["alarm_time"].tolist() == TIME[[3, 9]].tolist()
    assert columns["rows"].tolist() == [4, 1]
    assert columns["score"].tolist() == [9.0, 7.0]
    assert "start_time" not in event_columns(EVENTS)
    assert len(event_columns([])["start"]) == 0


def test_a_jump_has_no_alarm_time() -> None:
    columns = event_columns([with_time(Event(4, 4, 4, NO_DATA), TIME)])
    assert np.isnat(columns["alarm_time"]).all()


def test_blame_keeps_a_signal_that_is_known() -> None:
    event = replace(EVENTS[0], signal="level")
    assert event.with_blame([("a", 1.0)]).signal == "level"
    assert event.with_blame([("a", 1.0)], "spike").signal == "spike"


@pytest.mark.parametrize(
    ("reading", "unit", "said"),
    [
        (Reading("power", 49.61, 31.04, 35.02), "kW", "power 49.6 kW, expected 31.0 to 35.0"),
        (Reading("p", 0.01234, 0.011, 0.0112), "", "p 0.01234, expected 0.01100 to 0.01120"),
        (Reading("rpm", 12_345.6, 11_000.0, 12_000.0), "", "rpm 12,346, expected 11,000 to 12,000"),
        (Reading("on", 1.0, 0.0, 0.0), "", "on 1.0, expected 0.0"),
        (Reading("big", 1e12, 1.0, 2.0), "", "big 1e+12, expected 1 to 2"),
    ],
)
def test_a_reading_in_words(reading: Reading, unit: str, said: str) -> None:
    assert reading_words(reading, unit) == said


def test_columns_hold_what_was_expected_and_a_score_from_0_to_1() -> None:
    event = replace(
        EVENTS[0], readings=(Reading("a", 5.0, 1.0, 2.0),), partner="b", lasting=True,
        normal_rows=4_000,
    )  # fmt: skip
    columns = event_columns([event, EVENTS[1]])
    assert columns["expected"] == ["a 5.0, expected 1.0 to 2.0", ""]
    assert columns["partner"] == ["b", ""]
    assert columns["lasting"] == [True, False]
    assert columns["unit_score"].tolist() == [0.66, 0.2]
    assert columns["probability_upper"][0] == pytest.approx(3.84 / 4_000, rel=0.01)
    assert np.isnan(columns["probability_upper"][1])
