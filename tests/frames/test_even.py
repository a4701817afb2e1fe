from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frames.shapes import times
from vace_ad.frames.even import even_out

MINUTE = 60 * 10**9


@given(st.sets(st.integers(1, 198), max_size=15))
def test_removed_rows_come_back_without_values(gone: set[int]) -> None:
    values, time = np.arange(200.0)[:, None], times(200)
    keep = np.setdiff1d(np.arange(200), sorted(gone))
    even, stamps, real = even_out(values[keep], time[keep], MINUTE, 0.0)
    np.testing.assert_array_equal(even[real], values[keep])
    np.testing.assert_array_equal(stamps[real], time[keep])
    assert np.isnan(even[~real]).all()
    runs = np.diff(keep)
    expected = int((runs - 1)[runs - 1 <= 5].sum())
    assert (~real).sum() == expected
    if expected == len(gone):
        np.testing.assert_array_equal(stamps, time)


def test_long_holes_many_holes_and_irregular_steps_stay() -> None:
    values, time = np.zeros((200, 1)), times(200)
    keep = np.r_[0:100, 110:200]
    assert even_out(values[keep], time[keep], MINUTE, 0.0)[2].all()
    keep = np.flatnonzero(np.arange(200) % 6)
    assert even_out(values[keep], time[keep], MINUTE, 0.0)[2].all()
    keep = np.r_[0:100, 101:200]
    assert even_out(values[keep], time[keep], MINUTE, 0.01)[2].all()
    assert not even_out(values[keep], time[keep], MINUTE, 0.0)[2].all()
