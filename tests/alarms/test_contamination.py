from __future__ import annotations

import numpy as np
import pytest

from alarms.processes import PATCH, PROCESSES
from vace_ad.alarms.contamination import suspicious_stretches


@pytest.mark.parametrize("name", PROCESSES)
def test_clean_scores_are_rarely_suspected(name: str) -> None:
    suspected = [
        len(suspicious_stretches(PROCESSES[name](10_000, np.random.default_rng(seed)), PATCH))
        for seed in range(25)
    ]
    assert np.count_nonzero(suspected) <= 1


@pytest.mark.parametrize("name", PROCESSES)
def test_a_loud_stretch_is_found(name: str) -> None:
    scores = PROCESSES[name](10_000, np.random.default_rng(0))
    scores[4000:4200] += 25 * scores.std()
    ((start, end),) = suspicious_stretches(scores, PATCH).tolist()
    assert abs(start - 4000) <= 1
    assert abs(end - 4200) <= 1


def test_too_few_or_constant_scores_say_nothing() -> None:
    assert len(suspicious_stretches(np.arange(10.0))) == 0
    assert len(suspicious_stretches(np.ones(100))) == 0
