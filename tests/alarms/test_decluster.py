from __future__ import annotations

import numpy as np
import pytest

from alarms.processes import PATCH, PROCESSES
from vace_ad.alarms.calibration import Calibration


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("n", [1000, 10_000])
def test_clean_scores_are_rarely_suspected(name: str, n: int) -> None:
    suspected = [
        len(
            Calibration.from_scores(
                PROCESSES[name](n, np.random.default_rng(seed)), PATCH
            ).suspicious
        )
        for seed in range(25)
    ]
    assert np.count_nonzero(suspected) <= 1


@pytest.mark.parametrize("name", PROCESSES)
def test_loud_stretches_are_named_and_do_not_raise_the_threshold(name: str) -> None:
    scores = PROCESSES[name](10_000, np.random.default_rng(0))
    clean = Calibration.from_scores(scores, PATCH)
    scores[4000:4200] += 25 * scores.std()
    scores[7000:7600] += 20 * scores.std()
    dirty = Calibration.from_scores(scores, PATCH)
    assert len(dirty.suspicious) == 2
    for (start, end), at in zip(dirty.suspicious.tolist(), (4000, 7000), strict=True):
        assert at - 400 <= start <= at
        assert end > at + 190
    assert dirty.tail.quantile(1e-3) == pytest.approx(clean.tail.quantile(1e-3), rel=0.25)


def test_a_series_that_is_always_loud_is_not_suspected() -> None:
    scores = PROCESSES["averaged"](10_000, np.random.default_rng(0))
    for at in range(0, 10_000, 500):
        scores[at : at + 100] += 20
    assert len(Calibration.from_scores(scores, PATCH).suspicious) == 0


def test_too_few_or_constant_scores_say_nothing() -> None:
    assert len(Calibration.from_scores(np.arange(10.0)).suspicious) == 0
    assert len(Calibration.from_scores(np.ones(100)).suspicious) == 0
