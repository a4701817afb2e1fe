from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.report import data
from vace_ad.report.data import make_clock

START = np.datetime64("2026-03-01T00:00", "ns")


def stamps(steps_ms: NDArray[np.int64]) -> NDArray[np.datetime64]:
    return START + np.concatenate([[0], steps_ms.cumsum()]) * np.timedelta64(1, "ms")


def error(time: NDArray[np.datetime64]) -> float:
    made = make_clock(time, len(time))
    ms = (time - START) / np.timedelta64(1, "ms")
    return float(np.abs(np.interp(np.arange(len(time)), made.rows, made.at) - ms).max())


def test_an_even_axis_needs_two_points() -> None:
    made = make_clock(stamps(np.full(9_999, 250)), 10_000)
    assert made.rows.tolist() == [0, 9_999]
    assert made.at.tolist() == [0, 250 * 9_999]
    assert (made.step, made.gap) == (250, 2500)


def test_a_gap_keeps_both_its_ends() -> None:
    steps = np.full(999, 60_000)
    steps[400] = 3_600_000
    made = make_clock(stamps(steps), 1000)
    assert made.rows.tolist() == [0, 400, 401, 999]
    assert error(stamps(steps)) == 0


def test_uneven_stamps_are_exact_and_thinned_only_beyond_the_limit(monkeypatch) -> None:
    rng = np.random.default_rng(1)
    steps = rng.integers(90, 110, 5000)
    steps[[7, 3000]] = 100_000
    assert error(stamps(steps)) == 0
    monkeypatch.setattr(data, "MAX_KNOTS", 100)
    made = make_clock(stamps(steps), 5001)
    assert len(made.rows) < 110
    assert {7, 8, 3000, 3001} <= set(made.rows.tolist())
    assert error(stamps(steps)) < 1000  # of 100 ms steps, 50 rows from one point to the next


def test_without_time_the_axis_counts_rows() -> None:
    made = make_clock(None, 50)
    assert made.origin_ms is None
    assert made.at.tolist() == [0, 49]


def test_one_row_and_equal_stamps_make_an_axis() -> None:
    assert make_clock(None, 1).rows.tolist() == [0]
    assert make_clock(np.full(5, START), 5).step == 1
