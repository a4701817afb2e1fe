from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.flatline import longest_still, still_lengths


@pytest.mark.parametrize("seed", range(5))
def test_still_stretches_by_counting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (40, 3)).astype(float)
    rows[rng.integers(0, 40, 4), 2] = np.nan  # a missing value is no value that stays
    wanted = np.ones(rows.shape)
    for c, line in enumerate(rows.T):
        for i in range(len(line)):
            first = last = i
            while first > 0 and line[first - 1] == line[i]:
                first -= 1
            while last < len(line) - 1 and line[last + 1] == line[i]:
                last += 1
            wanted[i, c] = last - first + 1
    np.testing.assert_array_equal(still_lengths(rows), wanted)
    np.testing.assert_array_equal(longest_still(rows), wanted.max(axis=0))


def test_one_row_and_none() -> None:
    rows = np.zeros((1, 3))
    assert longest_still(rows).tolist() == longest_still(rows[:0]).tolist() == [1, 1, 1]
    assert still_lengths(rows[:0]).shape == (0, 3)
