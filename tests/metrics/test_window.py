from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import next_fast_len

from metrics.tsb_ad_oracle import load_window_oracle, read_series
from vace_ad.metrics import sliding_window
from vace_ad.metrics.window import _smooth


def wave(period: float, n: int = 5000) -> np.ndarray:
    return np.sin(np.arange(n) * 2 * np.pi / period)


# Of numbers whose squares vanish the oracle makes 0/0; ours has a test of its own.
NUMBERS = st.floats(-5, 5).map(lambda x: x if abs(x) > 1e-100 else 0.0)


@settings(max_examples=60)
@given(st.lists(st.one_of(NUMBERS, st.integers(0, 2).map(float)), min_size=8, max_size=300))
def test_random_series_equal_tsb_ad(values: list[float]) -> None:
    series = np.array(values)
    assert sliding_window(series) == load_window_oracle()(series)


def test_values_whose_squares_vanish_are_as_good_as_constant() -> None:
    assert sliding_window(np.array([0.0] * 7 + [8e-217])) == sliding_window(np.zeros(8))


@pytest.mark.parametrize(
    "series",
    [
        wave(5.5),
        wave(50),
        wave(302),
        wave(380),
        wave(50, n=30_000) + np.arange(30_000) / 100,
        np.full(100, 0.1),
        np.arange(500.0),
        (np.arange(900) == 450) * 1.0,
        np.random.default_rng(0).normal(size=25_000).cumsum(),
    ],
)
def test_shapes_of_series_equal_tsb_ad(series: np.ndarray) -> None:
    assert sliding_window(series) == load_window_oracle()(series)


@pytest.mark.data
@pytest.mark.parametrize("name", ["MSL_id_7", "SMAP_id_26", "SMD_id_1", "Daphnet_id_1"])
def test_real_series_equal_tsb_ad(data_folder: Path, name: str) -> None:
    values, _, _ = read_series(data_folder, name)
    oracle = load_window_oracle()
    for channel in values.T[:6]:
        assert sliding_window(channel) == oracle(channel)


def test_limits() -> None:
    assert sliding_window(wave(302)) == sliding_window(wave(302), limits="1.5") == 302
    assert sliding_window(wave(302), limits="main") == 125
    assert sliding_window(wave(5)) == 125
    assert sliding_window(wave(5), limits="main") == 5


def test_column_and_kinds() -> None:
    series = wave(40)
    assert sliding_window(series[:, None]) == sliding_window(series.tolist()) == 40
    assert sliding_window(np.round(series * 100).astype(int)) == 40


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (np.zeros((10, 2)), r"shape \(10, 2\)"),
        ([0.0, np.nan, 1.0], "nan at row 1"),
        ([], "no rows"),
    ],
)
def test_bad_series(series: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sliding_window(series)


def test_bad_limits() -> None:
    with pytest.raises(ValueError, match=r"'2\.0'; expected one of '1\.5', 'main'"):
        sliding_window(wave(9), limits="2.0")


def test_too_short_for_a_period() -> None:
    assert sliding_window([1.0, 2.0, 1.0]) == 125


def test_only_the_first_20_000_rows_count() -> None:
    assert sliding_window(np.append(wave(50, 20_000), 9 * wave(77, 60_000))) == 50


def test_lengths_of_transforms_are_scipys() -> None:
    sizes = range(1, 5000)
    assert [_smooth(n) for n in sizes] == [next_fast_len(n, real=True) for n in sizes]
