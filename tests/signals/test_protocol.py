"""Rhythms: found where there is one, not found by chance."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from vace_ad.config import VACEConfig
from vace_ad.signals.protocol import Seasonality, find_seasonality, with_seasonality
from vace_ad.signals.shape import weight_of


def sine(n: int, period: float, noise: float, seed: int = 0, d: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    phases = np.arange(d)
    return np.sin(2 * np.pi * np.arange(n)[:, None] / period + phases) + noise * rng.normal(
        size=(n, d)
    )


@pytest.mark.parametrize("rows", [sine(700, 60, 0.5), sine(5000, 97, 1.0, d=2)])
def test_period_and_rise_equal_loops(rows):
    found = find_seasonality([rows])
    assert found.period > 0
    assert found == pytest.approx(naive.rhythm(rows), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("noise", "off"), [(0.1, 4), (0.3, 12), (1.0, 24)])
def test_a_noisy_sine_is_a_rhythm_of_its_period(seed, noise, off):
    found = find_seasonality([sine(3000, 120, noise, seed)])
    assert found.clear
    assert abs(found.period - 120) <= off


def test_units_level_and_trend_of_channels_do_not_matter():
    rows = sine(3000, 120, 0.1)
    other = rows * [1e-6, 1e6, 1] + [1e3, -1e9, 0] + np.arange(3000)[:, None] * [0, 100, 0.01]
    assert find_seasonality([other]).period == pytest.approx(find_seasonality([rows]).period, abs=2)
    constant = np.concatenate([rows, np.full((3000, 1), 3.0)], axis=1)
    assert find_seasonality([constant]).period == find_seasonality([rows]).period


# 3000 rows are more than one look, which is all that is taken of them.
SIZES = [(150, 1), (300, 1), (300, 3), (800, 1), (800, 3), (800, 20), (1500, 2), (3000, 1)]


@pytest.mark.parametrize(("n", "d"), [*SIZES, (5000, 1), (5000, 6)])
def test_white_noise_has_no_rhythm(n, d):
    for seed in range(40):
        found = find_seasonality([np.random.default_rng(seed).normal(size=(n, d))])
        assert not found.clear, seed


def test_constant_channels_make_noise_no_surer():
    for seed in range(40):
        rows = np.full((800, 20), 3.0)
        rows[:, 4] = np.random.default_rng(seed).normal(size=800)
        assert not find_seasonality([rows]).clear, seed


@pytest.mark.parametrize("rows", [np.full((1000, 3), 7.0), np.zeros((1000, 1)), np.ones((1, 2))])
def test_a_constant_table_has_no_rhythm(rows):
    assert find_seasonality([rows]) == Seasonality(0, 0.0)
    assert not find_seasonality([rows]).clear


def test_a_straight_line_and_too_few_periods_are_no_rhythm():
    assert not find_seasonality([np.arange(2000.0)[:, None]]).clear
    assert not find_seasonality([sine(3 * 120, 120, 0.1)]).clear
    assert find_seasonality([sine(5 * 120, 120, 0.1)]).clear


def test_periods_too_short_or_too_long_for_a_patch_are_not_clear():
    for period in (20, 500):
        assert not find_seasonality([sine(4000, period, 0.1)]).clear


def test_the_longest_part_tells():
    parts = [np.random.default_rng(0).normal(size=(500, 3)), sine(3000, 120, 0.1)]
    assert abs(find_seasonality(parts).period - 120) <= 4


def test_patches_take_the_period_unless_their_length_is_given():
    clear, faint = Seasonality(118, 0.4), Seasonality(118, 0.05)
    assert with_seasonality(VACEConfig(), clear).length == 120
    assert with_seasonality(VACEConfig(), faint).length == 96
    assert with_seasonality(VACEConfig(patch_length=50), clear).length == 50
    assert with_seasonality(VACEConfig.from_preset("paper"), clear).length == 96


def test_shape_counts_with_the_clearness_of_the_rhythm():
    given = VACEConfig(patch_length=50)
    assert [weight_of(given, Seasonality(60, rise)) for rise in (0, 0.3, 0.9)] == [0.5, 0.6, 1.0]
    assert weight_of(VACEConfig(), Seasonality(0, 0.0)) == 0
    assert weight_of(VACEConfig(shape="always"), Seasonality(0, 0.0)) == 0.5
    assert weight_of(VACEConfig.from_preset("paper"), Seasonality(0, 0.0)) == 1
