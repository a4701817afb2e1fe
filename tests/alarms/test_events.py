from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.alarms.events import (
    CONDITIONS,
    LEVELS,
    NEAR_MISS,
    NO_DATA,
    Event,
    Reading,
    event_columns,
    found_words,
    groups_of,
    level,
    pair_words,
    plain_event,
    probability,
    reading_words,
    restored_event,
    severity,
    upper_bound,
    with_time,
)
from vace_ad.alarms.evidence import UNIT
from vace_ad.alarms.scan import NEVER, Limits, Tails

TIME = (np.datetime64("2026-01-01", "ns") + np.arange(10) * np.timedelta64(1, "m")).astype("M8[ns]")
EVENTS = (
    Event(2, 6, 3, score=9.0, ratio=2.0, probability=1e-6, severity=66.0, alarm=3),
    Event(9, 10, 9, score=7.0, ratio=1.2, probability=1e-5, severity=20.0, alarm=9),
)
TOPS = st.integers(1, 10**7)


def tails(n_rows: int = 4_000, n_channels: int = 2) -> Tails:
    n_lines = 4 * n_channels + 1
    rng = np.random.default_rng(0)
    nats = [np.asarray(rng.exponential(1.0, (n_rows, n_lines)) * UNIT, np.int64)]
    return Tails.fit(nats, np.zeros(n_lines, bool), n_channels)


TAILS = tails()


@given(TOPS, TOPS)
def test_a_louder_line_is_never_less_severe(a: int, b: int) -> None:
    weak, strong = sorted((a, b))
    common, rare = probability(TAILS, {0: weak}), probability(TAILS, {0: strong})
    assert 0 < rare <= common <= 1
    assert 0 <= severity(common) <= severity(rare) < 100


def test_the_strongest_line_counts() -> None:
    alone = probability(TAILS, {1: 300 * UNIT})
    assert probability(TAILS, {0: 5 * UNIT, 1: 300 * UNIT, 8: UNIT}) == alone


@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1e-5])
def test_at_the_limit_of_a_budget_the_probability_is_about_that_budget(rate: float) -> None:
    limits = Limits(TAILS, rate)
    for line in range(len(TAILS.level)):
        found = probability(TAILS, {line: int(limits.limit[line])})
        assert found == pytest.approx(rate, rel=0.2)


def test_strong_events_are_told_apart() -> None:
    found = [severity(probability(TAILS, {0: top * UNIT})) for top in (30, 100, 300, 1_000, 3_000)]
    assert np.diff(found).min() > 1
    assert max(found) < 99


def test_evidence_is_no_rarer_than_the_nats_that_it_amounts_to() -> None:
    steep = replace(TAILS, excess=np.full_like(TAILS.excess, 1.0))
    assert probability(steep, {0: 20 * UNIT}) == pytest.approx(2 * np.exp(-20))  # of two channels


def test_idle_lines_do_not_count() -> None:
    level = TAILS.level.copy()
    level[1] = NEVER
    some = replace(TAILS, level=level)  # one line of its kind is left
    assert probability(some, {0: 50 * UNIT}) == pytest.approx(
        probability(TAILS, {0: 50 * UNIT}) / 2
    )


def test_fewer_rows_leave_more_doubt() -> None:
    assert upper_bound(1e-30, 4_176) == pytest.approx(3.84 / 4_176, rel=0.01)
    assert upper_bound(1e-30, 400) > upper_bound(1e-30, 4_000)
    assert 0.01 < upper_bound(0.01, 10_000) < 0.0125
    assert upper_bound(0.5, 1) == 1


@given(st.floats(1e-12, 1.0), st.integers(1, 10**6))
def test_the_bound_is_above_what_it_bounds(p: float, n_rows: int) -> None:
    assert p <= upper_bound(p, n_rows) <= 1


def test_severity_scale() -> None:
    assert severity(1.0) == 0
    assert severity(1e-6) == pytest.approx(50)
    assert severity(1e-24) == pytest.approx(80)
    assert severity(1e-300) < 100


@pytest.mark.parametrize(
    ("decades", "word"),
    [(0.0, "low"), (5.9, "low"), (6.1, "medium"), (11.9, "medium"), (12.1, "high"), (23.9, "high"),
     (24.1, "critical"), (250.0, "critical")],
)  # fmt: skip
def test_words_by_decades(decades: float, word: str) -> None:
    assert level(severity(10.0**-decades)) == word


def test_words_rise_and_none_is_left_out() -> None:
    words = [level(s) for s in np.linspace(0, 100, 1001)]
    places = [LEVELS.index(word) for word in words]
    assert places == sorted(places)
    assert set(words) == set(LEVELS)


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
        (Reading("big", -1e9, 1.0, 2.0), "", "big -1e+09, expected 1 to 2"),
        (Reading("big", -999_999_999.0, 1.0, 2.0), "", "big -999,999,999.0, expected 1.0 to 2.0"),
        (Reading("low", 0.0, -1e9, 2.0), "", "low 0, expected -1e+09 to 2"),
        (Reading("same", 2.0, 2.0, 2.0), "", "same 2.0, expected 2.0"),
        (Reading("near", 2.004, 2.0, 2.0), "", "near 2.0040, expected 2.0000"),
        (
            Reading("fine", 0.0, 0.0, 1e-8),
            "",
            "fine 0.000000000, expected 0.000000000 to 0.000000010",
        ),
        (Reading("finer", 0.0, 0.0, 1e-9), "", "finer 0, expected 0 to 1e-09"),
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


def test_components_come_from_settings_or_names() -> None:
    event = Event(0, 1, 0, groups=("mill/b",), shares=(
        ("b", 0.3), ("kiln/t", 0.25), ("kiln/fan/p", 0.1), ("kiln/q", 0.15), ("c", 0.2),
    ))  # fmt: skip
    assert event.components == (("kiln", 0.4), ("mill", 0.3), ("kiln/fan", 0.1))
    assert event.component_of("c") == ""
    columns = event_columns([event, Event(0, 1, 0)], top=2)
    assert columns["components"] == ["kiln 40%, mill 30%", ""]
    assert columns["channels"] == ["b 30%, kiln/t 25%", ""]
    assert "components" not in event_columns([Event(0, 1, 0, shares=(("c", 1.0),))])


def test_settings_of_the_channels_that_are_blamed() -> None:
    settings = ("mill/b", "mill/bb", "kiln/c")
    assert groups_of([("b", 0.5), ("c", 0.5)], settings) == ("mill/b", "kiln/c")
    assert groups_of([], settings) == ()


def test_conditions_have_a_column_where_there_are_any() -> None:
    outside = Event(0, 1, 0, CONDITIONS, conditions="ambient 41, trained to 33")
    assert event_columns([outside, EVENTS[0]])["conditions"] == [outside.conditions, ""]
    assert "conditions" not in event_columns(EVENTS)


def test_a_pair_in_words() -> None:
    pair = replace(EVENTS[0], partner="power", shares=(("flow", 0.9), ("x", 0.1)))
    assert pair_words(pair) == "flow and power stopped going together"
    assert pair_words(replace(pair, partner=None)) == pair_words(replace(pair, shares=())) == ""


def test_what_was_found_in_words() -> None:
    gap, outside = Event(4, 4, 4, NO_DATA), Event(4, 5, 4, CONDITIONS)
    assert found_words([]) == "nothing found"
    assert found_words(EVENTS) == "2 anomalies"
    assert found_words([EVENTS[0], gap]) == "1 anomaly, 1 period without data"
    assert found_words([gap, gap]) == "0 anomalies, 2 periods without data"
    assert found_words([EVENTS[0], outside]) == "1 anomaly, 1 under conditions outside training"


def test_an_event_is_restored_from_plain_values() -> None:
    event = replace(
        with_time(EVENTS[0], TIME), signal="jump", shares=(("a", 0.75), ("b", 0.25)), partner="b",
        readings=(Reading("a", 5.0, 1.0, 2.0),), groups=("mill/a",), lasting=True,
        conditions="hot", normal_rows=7,
    )  # fmt: skip
    for one in (event, replace(event, alarm=None, alarm_time=None)):
        again = restored_event(json.loads(json.dumps(plain_event(one))))
        assert again == one
        assert again.start_time.dtype == one.start_time.dtype


def test_a_jump_has_the_time_of_the_row_before_it() -> None:
    assert with_time(Event(4, 4, 4, NO_DATA), TIME).peak_time == TIME[3]
