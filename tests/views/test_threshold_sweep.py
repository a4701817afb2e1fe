from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.runs import Rules
from vace_ad.views.report import what_if

N = 4000
EVENT = np.array([[1000, 1020]], np.intp)


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


def test_without_evidence_nothing_is_told() -> None:
    assert what_if(np.full(9, np.nan), 6.0, Rules(), EVENT[:0]) == []


def test_other_limits_count_events_as_the_rules_do(scores: np.ndarray) -> None:
    tried = what_if(scores, 6.0, Rules(join=5), EVENT, first=500)
    counts = {one.shift: one.events for one in tried}
    assert counts[0.0] == 1
    assert [one.shift for one in tried] == sorted(counts)
    assert next(n for shift, n in counts.items() if -3 < shift < -2.2) == 2
    assert tried[-1].events == 0
    assert max(counts.values()) > 5


def test_the_present_limit_gives_the_events_that_there_are(scores: np.ndarray) -> None:
    scores[1010:1400] = 6.5  # evidence that falls back slowly is no event of its own
    both = np.array([[1000, 1020], [2000, 2020]], np.intp)
    tried = {one.shift: one.events for one in what_if(scores, 6.0, Rules(), both, first=500)}
    assert tried[0.0] == 2
    assert min(n for shift, n in tried.items() if shift < 0) == 2


def test_a_limit_for_each_row_moves_as_a_whole(scores: np.ndarray) -> None:
    line = np.where(np.arange(N) < 2500, 6.0, 2.0)
    both = np.array([[1000, 1020], [3000, 3020]], np.intp)
    tried = {one.shift: one.events for one in what_if(scores, line, Rules(join=5), both, first=500)}
    assert tried[0.0] == 2
    assert tried[max(tried)] == 0
