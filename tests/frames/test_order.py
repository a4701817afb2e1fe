from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.frames.time import order_rows


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_against_a_loop(seconds: list[int]) -> None:
    values = np.random.default_rng(len(seconds)).normal(size=(len(seconds), 2))
    values[::3, 0] = np.nan
    time = np.array(seconds).astype("M8[s]").astype("M8[ns]")
    found, stamps, notes = order_rows(values, time)
    assert stamps.tolist() == np.unique(time).tolist()
    for row, second in zip(found, sorted(set(seconds)), strict=True):
        same = values[np.array(seconds) == second]
        for channel in range(2):
            known = [v for v in same[:, channel] if not np.isnan(v)]
            np.testing.assert_allclose(row[channel], np.mean(known) if known else np.nan)
    assert bool(notes) == (seconds != sorted(set(seconds)))
