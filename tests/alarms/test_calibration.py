from __future__ import annotations

import numpy as np
import pytest

from alarms.processes import PATCH
from vace_ad.alarms.calibration import Calibration


@pytest.mark.parametrize("n", [2, 3, 100, 5000])
def test_any_length_gives_rising_thresholds(n: int) -> None:
    calibration = Calibration.from_scores(np.random.default_rng(n).normal(size=n), 10)
    thresholds = [calibration.tail.quantile(share) for share in (1e-6, 1e-3, 0.1, 0.9)]
    assert np.isfinite(thresholds).all()
    assert thresholds == sorted(thresholds, reverse=True)


def test_scores_that_do_not_vary() -> None:
    calibration = Calibration.from_scores(np.ones(1000), PATCH)
    assert np.isfinite(calibration.tail.quantile(1e-4))
    assert calibration.tail.quantile(1e-4) >= 1


@pytest.mark.parametrize(("share", "left_out"), [(0.05, True), (0.09, True), (0.11, False)])
def test_strange_stretches_are_left_out_up_to_a_tenth(share: float, left_out: bool) -> None:
    scores = np.abs(np.random.default_rng(0).normal(size=1000))
    end = 300 + int(1000 * share)
    scores[300:end] += 20
    calibration = Calibration.from_scores(scores, 10)
    assert calibration.suspicious[0, 0] == 300  # named in any case
    assert calibration.suspicious[0, 1] >= end
    assert calibration.n_rows == (1000 - (end - 300) if left_out else 1000)
    assert (calibration.tail.quantile(1e-3) < 5) == left_out
