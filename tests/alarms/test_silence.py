from __future__ import annotations

import numpy as np

from vace_ad.alarms.silence import no_data_events
from vace_ad.frames.sampling import StepRule, StepTracker

MINUTE = 60 * 10**9


def test_jumps_in_time_and_silent_channels() -> None:
    minutes = np.r_[0:20, 22:40, 60:100]  # one row missing, then twenty
    time = np.datetime64("2026-01-01", "ns") + minutes * np.timedelta64(60 * 10**9, "ns")
    values = np.random.default_rng(0).normal(size=(len(time), 3))
    values[5:9, 0] = np.nan  # short
    values[50:60, 1] = np.inf
    values[50:60, 2] = np.nan
    values[70:, 0] = np.nan
    gaps = StepTracker(StepRule(MINUTE, max_gap=5)).add(time, len(time)).cuts()
    events = no_data_events(values, "abc", longer_than=5, time=time, step=MINUTE, gaps=gaps)
    assert [(e.start, e.end, e.kind) for e in events] == [
        (38, 38, "no data"),
        (50, 60, "no data"),
        (70, 78, "no data"),
    ]
    assert (events[0].start_time, events[0].end_time) == (time[37], time[38])
    assert events[1].shares == (("b", 0.5), ("c", 0.5))
    assert events[2].shares == (("a", 1.0),)
    assert np.isnan(events[0].severity)


def test_nothing_missing() -> None:
    assert no_data_events(np.zeros((10, 2)), "ab", longer_than=0) == []


def test_sentinels_are_silence_and_gaps_begin_beyond_a_length() -> None:
    values = np.zeros((60, 2))
    values[10:15, 0], values[20:26, 0], values[40:50, 1] = np.nan, 1.7e308, -1e101
    events = no_data_events(values, "ab", longer_than=5)
    assert [(e.start, e.end) for e in events] == [(20, 26), (40, 50)]


def test_a_jump_in_time_is_silence_only_beyond_a_length() -> None:
    minutes = np.r_[0:20, 25:40, 46:60]  # five rows are missing, then six
    time = np.datetime64("2026-01-01", "ns") + minutes * np.timedelta64(60 * 10**9, "ns")
    gaps = StepTracker(StepRule(MINUTE, max_gap=0)).add(time, len(time)).cuts()
    assert gaps == [20, 35]
    for longer_than, starts in ((4, [20, 35]), (5, [35]), (6, [])):
        events = no_data_events(
            np.zeros((len(time), 1)),
            "a",
            longer_than=longer_than,
            time=time,
            step=MINUTE,
            gaps=gaps,
        )
        assert [event.start for event in events] == starts
