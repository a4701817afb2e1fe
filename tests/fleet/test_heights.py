"""Heights of scores over thresholds, and units that machines can be compared by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.alarms.events import ACCEPTED, Event
from vace_ad.fleet.heights import PEAKS, comparable, heights_of, resistant_slope


def naive_slope(x: list[float], y: list[float]) -> float:
    slopes = []
    for i in range(len(x)):
        for j in range(len(x)):
            if x[j] - x[i] > 0.1:
                slopes.append((y[j] - y[i]) / (x[j] - x[i]))
    slopes.sort()
    half = len(slopes) // 2
    middle = slopes[half] if len(slopes) % 2 else (slopes[half - 1] + slopes[half]) / 2
    return min(max(middle, 0.0), 1.0)


def test_the_slope_is_the_median_over_all_pairs() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = 0.6 * x + rng.normal(size=60)
    assert 0.2 < resistant_slope(x, y) < 1
    assert resistant_slope(x, y) == pytest.approx(naive_slope(x.tolist(), y.tolist()))
    assert resistant_slope(x, -y) == 0
    assert resistant_slope(np.zeros(60), y) == 1  # nothing tells them apart


def test_many_machines_are_thinned_out() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=5000)
    assert resistant_slope(x, 0.5 * x + rng.normal(size=5000)) == pytest.approx(0.5, abs=0.1)


def test_thresholds_that_differ_by_chance_are_not_believed() -> None:
    rng = np.random.default_rng(2)
    scores, limits = np.exp(0.1 * rng.normal(size=300)), np.exp(0.4 * rng.normal(size=300))
    height = scores / limits
    even = height * comparable(limits, height)
    inner = np.abs(np.log(limits)) < 0.7
    assert np.log(even[inner]).std() < 0.2 < np.log(height[inner]).std()


def test_thresholds_that_tell_are_believed() -> None:
    rng = np.random.default_rng(3)
    limits = np.exp(rng.normal(size=300))
    height = np.exp(0.1 * rng.normal(size=300))  # scores go with thresholds
    np.testing.assert_allclose(comparable(limits, height), 1.0, rtol=0.15)


def test_a_machine_that_is_truly_different_keeps_its_threshold() -> None:
    rng = np.random.default_rng(4)
    limits = np.exp(0.2 * rng.normal(size=300))
    limits[0] = 50.0
    factors = comparable(limits, 1 / limits)  # all others score alike
    assert factors[0] < 2 < 50


@pytest.fixture(scope="module")
def judged() -> tuple[VACE, Any]:
    rng = np.random.default_rng(5)
    detector = VACE(patch_length=16, encoders=1, random_state=0).fit(rng.normal(size=(600, 2)))
    return detector, detector.detect(rng.normal(size=(500, 2)), first=100)


def test_heights_are_the_highest_of_each_stretch(judged: tuple[VACE, Any]) -> None:
    detector, found = judged
    learned = detector.calibration_
    known = heights_of(found, 100, learned, 16)
    height = found.scores / found.limits
    starts = range(100, 500, learned.spacing)
    slow = [np.nanmax(height[start : start + learned.spacing]) for start in starts]
    np.testing.assert_allclose(known.peaks, slow, rtol=1e-3)
    assert known.limit == pytest.approx(np.nanmedian(found.limits))
    assert max(known.trained) == pytest.approx(learned.scores.max() / known.limit, rel=1e-3)


def test_rows_that_were_called_normal_do_not_count(judged: tuple[VACE, Any]) -> None:
    detector, found = judged
    loud = replace(found, scores=np.where(np.arange(500) == 300, 99.0, found.scores))
    assert max(heights_of(loud, 100, detector.calibration_, 16).peaks) > 10
    named = replace(loud, accepted=(Event(290, 310, 300, ACCEPTED),))
    assert max(heights_of(named, 100, detector.calibration_, 16).peaks) < 10


def test_few_peaks_are_kept_of_a_long_table(judged: tuple[VACE, Any]) -> None:
    detector, found = judged
    long = replace(found, scores=np.tile(found.scores, 100), limits=np.tile(found.limits, 100))
    peaks = heights_of(long, 100, detector.calibration_, 16).peaks
    assert len(peaks) <= PEAKS
    assert max(peaks) == pytest.approx(np.nanmax(found.scores / found.limits), rel=1e-3)


def test_without_a_score_there_are_no_heights(judged: tuple[VACE, Any]) -> None:
    detector, found = judged
    blind = replace(found, limits=np.full(500, np.nan))
    assert heights_of(blind, 100, detector.calibration_, 16).peaks == ()
