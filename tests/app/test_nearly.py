from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.budget import Threshold
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.detection import Detection
from vace_ad.alarms.events import Event
from vace_ad.alarms.runs import Rules
from vace_ad.app.nearly import NEAR_MISSES, near_misses, what_if

N = 4000


def hump(scores: np.ndarray, at: int, height: float, rows: int = 20) -> None:
    scores[at : at + rows] += height * np.sin(np.linspace(0.2, np.pi - 0.2, rows))


@pytest.fixture
def scores() -> np.ndarray:
    scores = np.random.default_rng(0).gamma(2, 0.1, N)
    hump(scores, 1000, 9)  # an event
    hump(scores, 2000, 4)  # nearly one
    hump(scores, 3000, 3)
    hump(scores, 100, 4)  # in training
    return scores


@pytest.fixture
def calibration() -> Calibration:
    return Calibration.from_scores(np.random.default_rng(1).gamma(2, 0.1, N))


def detection(scores: np.ndarray) -> Detection:
    return Detection(scores, {}, Threshold(6.0, ""), (Event(1000, 1020, 1010),), ())


def test_the_strongest_below_the_threshold_are_named_without_events_and_training(
    scores: np.ndarray, calibration: Calibration
) -> None:
    found = near_misses(detection(scores), calibration, first=500, join=10)
    by_score = sorted(found, key=lambda event: -event.score)
    assert [1995 < by_score[0].start < 2020, 2995 < by_score[1].start < 3020] == [True, True]
    assert all(event.start >= 500 and not 990 < event.peak < 1030 for event in found)
    assert all(event.start <= event.peak < event.end for event in found)
    assert [event.start for event in found] == sorted(event.start for event in found)
    assert by_score[0].probability < by_score[1].probability < 0.01
    assert np.isnan(by_score[0].severity)
    assert len(found) <= NEAR_MISSES


def test_where_nothing_stands_out_the_strongest_alone_is_named(calibration: Calibration) -> None:
    flat = np.random.default_rng(2).uniform(0, 0.1, N)
    found = near_misses(Detection(flat, {}, Threshold(6.0, ""), (), ()), calibration)
    assert [event.peak for event in found] == [int(flat.argmax())]


def test_without_scores_nothing_is_named(calibration: Calibration) -> None:
    empty = Detection(np.full(9, np.nan), {}, Threshold(6.0, ""), (), ())
    assert near_misses(empty, calibration) == []
    assert what_if(empty.scores, 6.0, Rules(), calibration) == []


def test_other_thresholds_count_events_as_the_rules_do(
    scores: np.ndarray, calibration: Calibration
) -> None:
    rules = Rules(join=5)
    tried = what_if(scores, 6.0, rules, calibration, first=500, step_seconds=60.0)
    counts = {one.shift: one.events for one in tried}
    assert counts[0.0] == 1
    assert [one.shift for one in tried] == sorted(counts)
    assert next(n for shift, n in counts.items() if -3 < shift < -2.2) == 2
    assert tried[-1].events == 0
    assert max(counts.values()) > 5
    assert "a day" in tried[0].words or tried[0].words == ""
    assert any("false alarms a " in one.words or " a day" in one.words for one in tried)
    assert tried[-1].words == "no false alarm in the training rows"


def test_a_threshold_for_each_row_moves_as_a_whole(scores: np.ndarray) -> None:
    line = np.where(np.arange(N) < 2500, 6.0, 2.0)
    tried = {one.shift: one.events for one in what_if(scores, line, Rules(join=5), None, first=500)}
    assert tried[0.0] == 2
