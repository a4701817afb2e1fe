from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vace_ad.errors import InputError
from vace_ad.frames import time as module
from vace_ad.frames.time import resample

SECOND = 10**9


def stamps(seconds: list[float]) -> np.ndarray:
    return (np.array(seconds) * SECOND).astype(np.int64).view("datetime64[ns]")


def test_means_gaps_and_beginnings() -> None:
    values = np.array([[1.0], [3.0], [np.nan], [5.0], [7.0]])
    means, time = resample(values, stamps([61, 62, 63, 64, 75]), 5 * SECOND)
    np.testing.assert_array_equal(means[:, 0], [3.0, np.nan, np.nan, 7.0])
    assert time.astype(np.int64).tolist() == [s * SECOND for s in (60, 65, 70, 75)]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 200), min_size=2, max_size=40), st.integers(1, 50))
def test_against_a_loop(seconds: list[int], every: int) -> None:
    seconds = sorted(seconds)
    values = np.random.default_rng(len(seconds)).normal(size=(len(seconds), 2))
    values[::3, 0] = np.nan
    gaps = [b - a for a, b in pairwise(seconds) if b > a]
    if gaps and every < 0.75 * np.median(gaps):
        with pytest.raises(InputError, match="would invent rows"):
            resample(values, stamps(seconds), every * SECOND)
        return
    means, time = resample(values, stamps(seconds), every * SECOND)
    for row, begin in zip(means, time.astype(np.int64) // SECOND, strict=True):
        inside = [i for i, s in enumerate(seconds) if begin <= s < begin + every]
        for channel in range(2):
            known = [values[i, channel] for i in inside if not np.isnan(values[i, channel])]
            expected = np.mean(known) if known else np.nan
            np.testing.assert_allclose(row[channel], expected, rtol=1e-12)
    assert time[0] <= stamps(seconds)[0]
    assert time[-1] <= stamps(seconds)[-1]


def test_a_span_that_makes_too_many_rows() -> None:
    with pytest.raises(InputError, match="look for a wrong time"):
        resample(np.zeros((10_000, 1)), stamps([*range(9_999), 3e7]), SECOND)
    far = np.sort(np.r_[-(2**63) + 5, np.arange(99) * SECOND, 2**63 - 5]).view("datetime64[ns]")
    with pytest.raises(InputError, match="look for a wrong time"):
        resample(np.zeros((101, 1)), far, SECOND)
    with pytest.raises(InputError, match="longer span"):
        resample(np.zeros((4, 1)), stamps([0, 1, 2, 3e9]), SECOND)


def test_how_many_rows_and_cells_are_too_many(monkeypatch) -> None:
    """Up to a million rows, or 20 times as many as there were, and so many cells."""
    assert len(resample(np.zeros((4, 1)), stamps([0, 1, 2, 999_999]), SECOND)[0]) == 1_000_000
    with pytest.raises(InputError, match="1,000,001 rows of 4;"):
        resample(np.zeros((4, 1)), stamps([0, 1, 2, 1_000_000]), SECOND)
    monkeypatch.setattr(module, "_FEW_ROWS", 10)
    assert len(resample(np.zeros((4, 1)), stamps([0, 1, 2, 79]), SECOND)[0]) == 80
    with pytest.raises(InputError, match="81 rows of 4;"):
        resample(np.zeros((4, 1)), stamps([0, 1, 2, 80]), SECOND)
    monkeypatch.setattr(module, "_MOST_CELLS", 8)
    assert resample(np.zeros((4, 2)), stamps([0, 1, 2, 3]), SECOND)[0].shape == (4, 2)
    with pytest.raises(InputError, match="5 rows of 4;"):
        resample(np.zeros((4, 2)), stamps([0, 1, 2, 4]), SECOND)


def test_rows_of_one_time_have_no_step_to_keep() -> None:
    means, time = resample(np.array([[1.0], [3.0]]), stamps([7, 7]), 5 * SECOND)
    assert means.tolist() == [[2.0]]
    assert time.astype(np.int64).tolist() == [5 * SECOND]


@pytest.mark.parametrize(("every", "fits"), [(3.0, True), (2.9, False)])
def test_a_span_is_at_least_three_quarters_of_a_step(every: float, fits: bool) -> None:
    time, values = stamps([0, 4, 8, 8, 8, 8, 12]), np.zeros((7, 1))
    if fits:
        assert len(resample(values, time, int(every * SECOND))[0]) == 5
        return
    with pytest.raises(InputError, match="would invent rows: the table's step is 4 s"):
        resample(values, time, int(every * SECOND))
