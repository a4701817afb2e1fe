from __future__ import annotations

import numpy as np
import pytest

from alarms.processes import PATCH, PROCESSES
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.runs import Rules, runs_above


@pytest.mark.parametrize("n", [2, 3, 100, 5000, 300_000])
def test_any_length_gives_rising_thresholds(n: int) -> None:
    calibration = Calibration.from_scores(np.random.default_rng(n).normal(size=n), 10)
    budgets = (1e-6, 1e-3, 0.1, 1.0, 5.0)
    thresholds = [calibration.threshold_for(events, Rules(join=10)) for events in budgets]
    assert np.isfinite(thresholds).all()
    assert thresholds == sorted(thresholds, reverse=True)


def test_counts_are_those_of_the_whole_sample() -> None:
    scores = PROCESSES["rough"](50_000, np.random.default_rng(0))
    scores[1000:1500] = np.nan
    calibration = Calibration.from_scores(scores, PATCH)
    for rules in (Rules(), Rules(join=48), Rules(join=5, min_length=4, cooldown=100)):
        for level in np.quantile(calibration.scores, (0.1, 0.5, 0.9, 0.999)):
            assert calibration.count(level, rules) == len(runs_above(scores, level, rules))


def test_scores_that_do_not_vary() -> None:
    calibration = Calibration.from_scores(np.ones(1000), PATCH)
    assert np.isfinite(calibration.threshold_for(0.5, Rules()))
    assert calibration.threshold_for(0.5, Rules()) >= 1


@pytest.mark.parametrize(("share", "left_out"), [(0.05, True), (0.09, True), (0.11, False)])
def test_strange_stretches_are_left_out_up_to_a_tenth(share: float, left_out: bool) -> None:
    scores = np.abs(np.random.default_rng(0).normal(size=1000))
    end = 300 + int(1000 * share)
    scores[300:end] += 20
    calibration = Calibration.from_scores(scores, 10)
    assert calibration.suspicious[0, 0] == 300  # named in any case
    assert calibration.suspicious[0, 1] >= end
    assert calibration.n_rows == (1000 - (end - 300) if left_out else 1000)
    assert (calibration.threshold_for(1.0, Rules()) < 5) == left_out
