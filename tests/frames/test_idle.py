"""Which rows are not judged, whatever the chunks; and bad rules, answered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.config import VACEConfig
from vace_ad.errors import ConfigError, InputError
from vace_ad.frames.idle import IdleRule, IdleTracker, idle_rows, watched, window_times

CHANNELS = ("speed", "flow", "status=run", "status=stopped")


def rows(speed, status=1):
    found = np.zeros((len(speed), 4))
    found[:, 0] = speed
    found[:, 2], found[:, 3] = status == 1, status == 0
    return found


def off(rule, values, time=None):
    return idle_rows(rule, values, time, None).any.nonzero()[0].tolist()


def test_rows_around_a_standstill_are_off_too() -> None:
    rule = IdleRule(VACEConfig(off="speed < 5", run_up=2, run_down=1), CHANNELS)
    assert off(rule, rows([9, 9, 9, 1, 1, 9, 9, 9, 9])) == [2, 3, 4, 5, 6]


def test_a_missing_reading_is_as_the_row_before() -> None:
    rule = IdleRule(VACEConfig(off="speed < 5", run_up=0, run_down=0), CHANNELS)
    assert off(rule, rows([9, np.nan, 1, np.nan, np.inf, 9])) == [2, 3, 4]


def test_words_of_a_column_can_say_that_a_machine_is_off() -> None:
    rule = IdleRule(VACEConfig(off="status == 'stopped'", run_up=0, run_down=0), CHANNELS)
    assert off(rule, rows([9, 9, 9], status=np.array([1, 0, 1]))) == [1]


@given(
    st.lists(st.sampled_from([0.0, 9.0, np.nan]), min_size=1, max_size=30),
    st.integers(0, 4),
    st.integers(1, 29),
)
def test_chunks_of_any_size_give_the_same_rows(speed, run_up, cut) -> None:
    rule = IdleRule(VACEConfig(off="speed < 5", run_up=run_up), CHANNELS)
    values = rows(speed)
    whole = IdleTracker(rule).add(values, None).off
    first, second = IdleTracker(rule), IdleTracker(rule)
    parts = [first.add(values[:cut], None).off]
    second.resume(first.state())
    parts.append(second.add(values[cut:], None).off)
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_maintenance_is_a_matter_of_time() -> None:
    time = np.datetime64("2026-01-01", "ns") + np.arange(6) * np.timedelta64(1, "h")
    windows = ("2026-01-01T02:00..2026-01-01T04:00",)
    rule = IdleRule(VACEConfig(maintenance=windows), CHANNELS)
    found = idle_rows(rule, rows([9] * 6), time, None)
    assert [(one.kind, one.start, one.end) for one in found.stretches()] == [("maintenance", 2, 4)]
    with pytest.raises(InputError, match="need times"):
        idle_rows(rule, rows([9] * 6), None, None)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ("2026-01-01", "write FROM..TO"),
        ("2026-01-01..", "write FROM..TO"),
        ("soon..later", "write FROM..TO"),
        ("2026-01-02..2026-01-01", "ends before it begins"),
    ],
)
def test_windows_that_are_none_are_refused(window, words) -> None:
    with pytest.raises(ConfigError, match=words):
        window_times([window], None)


def test_windows_are_in_the_zone_of_the_rows() -> None:
    (window,) = window_times(["2026-07-01T06:00..2026-07-01T08:00"], "Europe/Berlin")
    assert window[0] == np.datetime64("2026-07-01T04:00")


@pytest.mark.parametrize(
    ("condition", "words"),
    [("sped < 5", "did you mean 'speed'"), ("speed <", "ends too early"), ("speed = 'x'", "words")],
)
def test_an_off_rule_that_means_nothing_is_refused(condition, words) -> None:
    with pytest.raises((ConfigError, InputError), match=words):
        IdleRule(VACEConfig(off=condition), CHANNELS)


def test_context_and_words_are_not_watched() -> None:
    config = VACEConfig(context=("flow",), off="status == 'stopped'")
    assert watched(config, CHANNELS).tolist() == [True, False, False, False]
    assert watched(VACEConfig(watch=("flow",)), CHANNELS).tolist() == [False, True, False, False]


def test_a_number_whose_name_looks_like_a_state_is_watched() -> None:
    assert watched(VACEConfig(), ("a=b", "c")).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"context": ("flwo",)}, "did you mean 'flow'"),
        ({"watch": ("nothing",)}, "no column is called"),
        ({"context": ("speed", "flow", "status")}, "none is left to watch"),
    ],
)
def test_context_that_cannot_be_is_refused(settings, words) -> None:
    with pytest.raises(InputError, match=words):
        watched(VACEConfig(**settings), CHANNELS)


def test_a_channel_is_context_or_watched() -> None:
    with pytest.raises(ConfigError, match="in context and in watch"):
        VACEConfig(context=["a"], watch=["a"])
