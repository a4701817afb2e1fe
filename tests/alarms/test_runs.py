from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.errors import ConfigError


def slow(scores: list[float], threshold: float, rules: Rules) -> list[tuple[int, int]]:
    """Row by row, as one would explain it."""
    events: list[list[int]] = []
    for row, score in enumerate(scores):
        if score > threshold:
            if events and row - events[-1][1] <= rules.join:
                events[-1][1] = row + 1
            else:
                events.append([row, row + 1])
    long_enough = [(a, b) for a, b in events if b - a >= rules.min_length]
    kept: list[tuple[int, int]] = []
    for start, end in long_enough:
        if not kept or start >= kept[-1][1] + rules.cooldown:
            kept.append((start, end))
    return kept


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, float("nan")]), max_size=80),
    st.integers(0, 6),
    st.integers(1, 6),
    st.integers(0, 10),
)
def test_against_the_row_by_row_definition(
    scores: list[float], join: int, min_length: int, cooldown: int
) -> None:
    rules = Rules(join, min_length, cooldown)
    found = runs_above(np.array(scores, dtype=np.float64), 0.5, rules)
    assert [tuple(run) for run in found.tolist()] == slow(scores, 0.5, rules)


@pytest.mark.parametrize("wrong", [{"join": -1}, {"min_length": 0}, {"cooldown": -5}])
def test_rules_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Rules(**wrong)
