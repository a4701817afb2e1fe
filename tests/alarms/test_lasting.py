"""Evidence that lasts, against a loop over the rows."""

from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.lasting import ABOVE_PAST, ABOVE_SEEN, GAP, LEAST, STRETCH, Lasting
from vace_ad.alarms.watcher import EVERY, Start, Watcher

SPACING, SEEN, LIMIT = 20, 0.5, 50.0


def plain(scores: np.ndarray, limit: float, n: int) -> float:
    """The ratio after n rows."""
    capped = np.minimum(scores[:n], limit)
    past = capped[: max(0, n - round(GAP * SPACING))]
    past = past[np.isfinite(past)]
    latest = capped[max(0, n - round(STRETCH * SPACING)) :]
    latest = latest[np.isfinite(latest)]
    if len(past) < LEAST or len(latest) < STRETCH * SPACING / 2:
        return 0.0
    if (scores[max(0, n - round(GAP * SPACING)) : n] > limit).any():
        return 0.0
    return latest.mean() / max(ABOVE_PAST * past.max(), ABOVE_SEEN * SEEN)


def test_the_ratio_is_that_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    scores = rng.exponential(size=1500) + np.where(np.arange(1500) > 1000, 4.0, 0.0)
    scores[500] = 60.0
    scores[rng.integers(0, 1500, 60)] = np.nan
    scores[700:740] = np.nan
    one, found = Lasting(SPACING, SEEN), []
    for n in range(0, 1500, 10):
        found.append(one.ratio())
        one.add(scores[n : n + 10], np.full(10, LIMIT))
    wanted = [plain(scores, LIMIT, n) for n in range(0, 1500, 10)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert max(found) > 0


def judged(scores: np.ndarray) -> np.ndarray:
    start = Start(0.3, 0.2, threshold=40.0, rate=1e-4, spacing=SPACING, seen=SEEN)
    return Watcher(start).add(scores).ratio > 1


def test_what_lies_far_below_the_threshold_is_an_alarm_once_it_lasts() -> None:
    scores = np.random.default_rng(1).uniform(0.2, 0.4, 1200)
    assert not judged(scores).any()
    scores[800:] += 0.8
    alarm = np.flatnonzero(judged(scores))
    assert 800 < alarm[0] <= 800 + STRETCH * SPACING + EVERY
    assert alarm[-1] < 800 + GAP * SPACING + STRETCH * SPACING + EVERY  # then it is the past


@pytest.mark.parametrize("at", [100, 800])
def test_one_high_peak_is_no_evidence_that_lasts(at: int) -> None:
    scores = np.random.default_rng(2).uniform(0.2, 0.4, 1200)
    scores[at] = 1e6
    assert np.flatnonzero(judged(scores)).tolist() == [at]


def test_too_little_past_tells_nothing() -> None:
    scores = np.full(LEAST, 0.3)
    scores[LEAST // 2 :] = 2.0
    assert not judged(scores).any()


def test_what_the_finished_detector_finds_in_its_training_rows_is_nothing() -> None:
    scores = np.full(1200, 0.1)
    scores[800:] = 0.9 * ABOVE_SEEN * SEEN
    assert not judged(scores).any()
