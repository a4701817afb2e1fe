from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vace_ad.metrics._order import Levels, Runs, predicted_runs, spread, unpredicted_runs

THRESHOLDS = 6
levels = st.lists(st.integers(0, THRESHOLDS), min_size=1, max_size=40)


def naive_runs(rows: list[int], predicted: bool) -> set[tuple[int, int, int]]:
    """All (start, stop, threshold), threshold by threshold, row by row."""
    found = set()
    for k in range(THRESHOLDS):
        start = None
        for i, level in enumerate([*rows, None]):
            inside = level is not None and (level > k) == predicted
            if inside and start is None:
                start = i
            elif not inside and start is not None:
                found.add((start, i, k))
                start = None
    return found


def unfold(runs: Runs) -> list[tuple[int, int, int]]:
    fields = zip(*(field.tolist() for field in runs), strict=True)
    return [(start, stop, k) for start, stop, first, last in fields for k in range(first, last)]


@given(levels)
@example([3, 3, 3])
@example([0] * 5)
@example([5, 1, 2, 3, 4, 5, 1, 6, 1])
def test_runs_at_every_threshold(rows: list[int]) -> None:
    all_levels = Levels(np.array(rows), THRESHOLDS)
    for runs, predicted in [
        (predicted_runs(all_levels), True),
        (unpredicted_runs(all_levels), False),
    ]:
        unfolded = unfold(runs)
        assert set(unfolded) == naive_runs(rows, predicted)
        assert len(set(unfolded)) == len(unfolded)  # each run once


@given(levels)
def test_spread_counts_the_runs(rows: list[int]) -> None:
    runs = predicted_runs(Levels(np.array(rows), THRESHOLDS))
    expected = [sum(k == t for _, _, t in naive_runs(rows, True)) for k in range(THRESHOLDS)]
    assert spread(runs, THRESHOLDS).tolist() == expected
    halves = np.full(runs.first.size, 0.5)
    assert spread(runs, THRESHOLDS, halves) == pytest.approx(np.array(expected) / 2)
