from __future__ import annotations

import numpy as np
import pytest

from alarms.feeds import Toy, run_feed
from alarms.plants import coupled
from vace_ad.alarms.budget import Threshold
from vace_ad.alarms.detection import (
    NEAR_MISSES,
    Found,
    StreamResult,
    accepted_events,
    find_events,
    near_misses,
    no_data_events,
    tolerance,
)
from vace_ad.alarms.suppression import Stretch
from vace_ad.frames.sampling import StepRule, StepTracker
from vace_ad.frames.table import Table

TRAIN, N, D = 3000, 1600, 5
MINUTE = 60 * 10**9
VALUES = coupled(TRAIN + N, D, seed=4)
TIME = np.datetime64("2026-01-01", "ns") + np.arange(N) * np.timedelta64(MINUTE, "ns")
NO_RUNS = np.empty((0, 2), np.intp)


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


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy(VALUES[:TRAIN], step=MINUTE)


@pytest.fixture(scope="module")
def rows(toy: Toy) -> np.ndarray:
    rows, unit = VALUES[TRAIN:].copy(), toy.alarm.cells.spread * toy.alarm.cells.scale
    rows[500:560, 2] += 6 * unit[2]
    rows[1100:1160, 0] += 6 * unit[0]
    return rows


def detect(toy: Toy, table: Table, rows: np.ndarray, **how) -> Found:
    run = run_feed(toy, rows)
    signals = {"one": np.arange(len(rows)) / 2, "two": np.ones(len(rows))}
    judged = StreamResult(run.changes, run.evidence, run.surprise)
    threshold = Threshold(3.0, "about one", note="be careful")
    return find_events(toy, table, signals, judged, threshold, **how)


def test_events_have_times_and_the_surprise_of_their_peaks(toy: Toy, rows: np.ndarray) -> None:
    found = detect(toy, Table(rows, toy.channels, TIME), rows)
    first, second = found.events
    assert (first.shares[0][0], second.shares[0][0]) == ("c", "a")
    for event, start in ((first, 500), (second, 1100)):
        assert abs(event.start - start) <= 6
        assert event.start <= event.peak < event.end
        assert event.score == found.surprise[event.peak]
        assert event.start_time == TIME[event.start]
        assert event.end_time == TIME[event.end - 1]
        assert (event.peak_time, event.alarm_time) == (TIME[event.peak], TIME[event.alarm])
    assert found.anomalies == found.events
    assert found.predictions.sum() == first.rows + second.rows
    assert found.predictions[first.start : first.end].all()
    scores = found.unit_scores
    assert (scores[first.start : first.end] == first.severity / 100).all()
    outside = np.isfinite(found.evidence) & (found.predictions == 0)
    assert (scores[outside] == 0).all()
    assert np.nanmax(scores) < 1
    np.testing.assert_array_equal(found.scores, np.arange(N) / 2 + 1)
    assert found.notes == ("be careful",)


def test_rows_of_the_training_make_no_events(toy: Toy, rows: np.ndarray) -> None:
    found = detect(toy, Table(rows, toy.channels), rows, first=800)
    (event,) = found.events
    assert abs(event.start - 1100) <= 6
    assert np.isnan(found.evidence[:800]).all()
    assert np.isnan(found.limits[:800]).all()
    assert (found.limits[800:] == 1).all()
    assert all(miss.start >= 800 for miss in found.near_misses)


def test_missing_rows_and_channels_are_events_of_their_own_kind(toy: Toy, rows: np.ndarray) -> None:
    values, time = rows.copy(), TIME.copy()
    values[200:300, 3] = np.nan
    time[900:] += np.timedelta64(200 * MINUTE, "ns")
    found = detect(toy, Table(values, toy.channels, time), rows)
    kinds = [(event.kind, event.start, event.end) for event in found.events]
    assert ("no data", 200, 300) in kinds
    assert ("no data", 900, 900) in kinds
    assert [start for _, start, _ in kinds] == sorted(start for _, start, _ in kinds)
    assert len(found.anomalies) == 2
    assert found.predictions[200:300].sum() == 0


def test_near_misses_lie_below_the_limit_and_away_from_events() -> None:
    evidence = np.full(1000, 0.1)
    evidence[100:110] = 0.7
    evidence[300:305] = [0.5, 0.8, 0.9, 0.6, 0.3]
    evidence[500:520] = 3.0  # an event
    evidence[530:540] = 0.9  # too near to it
    evidence[700:710] = 0.25  # too little
    evidence[900] = np.nan
    found = near_misses(evidence, np.array([[500, 520]]), 48)
    assert found.tolist() == [[300, 304], [100, 110]]


def test_only_the_strongest_near_misses_are_told() -> None:
    evidence = np.zeros(2000)
    evidence[100:2000:100] = np.linspace(0.6, 0.99, 19)
    found = near_misses(evidence, NO_RUNS, 48)
    assert found[:, 0].tolist() == [1900 - 100 * k for k in range(NEAR_MISSES)]
    assert near_misses(np.full(50, np.nan), NO_RUNS, 48).shape == (0, 2)


def test_near_misses_of_a_table_are_told_with_what_they_had(toy: Toy, rows: np.ndarray) -> None:
    found = detect(toy, Table(rows, toy.channels, TIME), rows)
    assert found.near_misses
    for miss in found.near_misses:
        assert (miss.kind, miss.alarm, miss.level) == ("near miss", None, "")
        assert miss.ratio == found.evidence[miss.start : miss.end].max() <= 1
        assert miss.score == found.surprise[miss.peak]
        assert miss.start_time == TIME[miss.start]
    ratios = [miss.ratio for miss in found.near_misses]
    assert ratios == sorted(ratios, reverse=True)


def test_accepted_stretches_bear_evidence_and_are_listed() -> None:
    stretch = Stretch("p", 40, 60, ("a", "c"), 2.5)
    assert tolerance((), 100, 10) is None
    found = tolerance((stretch, stretch._replace(allowance=1.5)), 100, 10)
    assert found is not None
    assert set(found[30:70]) == {2.5}
    assert set(np.r_[found[:30], found[70:]]) == {1.0}
    named = tolerance((stretch._replace(named=True),), 100, 10)
    assert named is not None
    assert np.isinf(named[35:65]).all()
    assert np.isfinite(named[:35]).all()
    table = Table(np.zeros((100, 3)), ("a", "b", "c"), TIME[:100])
    (event,) = accepted_events([stretch], table, 50)
    assert (event.kind, event.start, event.end, event.like) == ("accepted", 40, 60, "p")
    assert event.shares == (("a", 0.5), ("c", 0.5))
    assert event.start_time == TIME[40]
    assert accepted_events([stretch], table, 60) == ()
