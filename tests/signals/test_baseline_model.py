"""What the other channels predict, and cells rebuilt from them, against least squares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from vace_ad.signals.baseline_model import Normal, medians, quantile


def together(n: int, seed: int = 0, noise: float = 0.1) -> np.ndarray:
    """Six channels that follow two hidden ones, deviation near one."""
    rng = np.random.default_rng(seed)
    hidden = np.stack([np.sin(np.arange(n) / 11), np.cos(np.arange(n) / 29)], axis=1)
    mixed = hidden @ np.random.default_rng(7).normal(size=(2, 6))
    return mixed / mixed.std(axis=0) + noise * rng.normal(size=(n, 6))


def test_residuals_are_those_of_a_ridge_regression_on_the_others():
    train, rows = together(800), together(130, seed=1)
    train[100], rows[17] = 70, -90  # beyond what counts where channels are related
    normal, held, _ = Normal.fit([train[:300], train[300:]])
    assert [len(part) for part in held] == [300, 500]
    scaled = naive.scaled(train, train)
    wanted_held, unit = naive.held_out_residuals(scaled)
    np.testing.assert_allclose(np.concatenate(held), wanted_held, atol=1e-9)
    wanted = naive.residuals(scaled, naive.scaled(train, rows), unit)
    np.testing.assert_allclose(normal.residuals(normal.scaled(rows)), wanted, atol=1e-9)


def test_fewer_rows_than_channels_give_the_same_regression():
    rng = np.random.default_rng(3)
    train = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 40)) + 0.1 * rng.normal(size=(30, 40))
    normal, held, _ = Normal.fit([train[:12], train[12:]])
    scaled = naive.scaled(train, train)
    wanted_held, unit = naive.held_out_residuals(scaled)
    np.testing.assert_allclose(np.concatenate(held), wanted_held, atol=1e-8)
    wanted = naive.residuals(scaled, scaled, unit)
    np.testing.assert_allclose(normal.residuals(normal.scaled(train)), wanted, atol=1e-8)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65, 200])
def test_a_row_has_the_same_bits_in_every_company(n):
    normal, *_ = Normal.fit([together(500)])
    rows = normal.scaled(together(300, seed=1))
    assert np.array_equal(normal.residuals(rows[:n]), normal.residuals(rows)[:n])


def test_one_channel_a_constant_one_and_two_that_are_equal():
    alone = together(100)[:, :1]
    normal, *_ = Normal.fit([alone])
    assert not normal.residuals(normal.scaled(alone)).any()
    rows = together(400)
    rows[:, 1] = 0
    rows[:, 3] = rows[:, 2]
    normal, *_ = Normal.fit([rows])
    residuals = normal.residuals(normal.scaled(np.vstack([rows, rows * 1e6])))
    assert np.isfinite(residuals).all()
    assert not residuals[:, 1].any()


def test_channels_in_units_of_their_own_and_constant_ones():
    train = np.stack([np.arange(100) % 2 * 1e30, np.full(100, 50.0), np.zeros(100)], axis=1)
    normal = Normal.units([train])
    np.testing.assert_allclose(normal.scale, [0.5e30, 0.5, 1.0])
    huge = np.full((2, 3), 1e99)
    assert np.abs(normal.scaled(huge)).max() == 1e4


@pytest.mark.parametrize("gone", [[2], [1, 4], [0, 2, 3, 5]])
def test_missing_cells_are_rebuilt_from_the_rest_plus_usual_noise(gone):
    train, rows = together(2000), together(60, seed=1)
    normal, *_ = Normal.fit([train])
    broken = rows.copy()
    broken[20:50, gone] = np.nan
    scaled, z = naive.scaled(train, train), naive.scaled(train, rows)
    found = normal.rebuild(broken, first=1000)
    np.testing.assert_array_equal(found[:20], rows[:20])
    np.testing.assert_array_equal(found[50:], rows[50:])
    rest = np.setdiff1d(np.arange(6), gone)
    np.testing.assert_array_equal(found[:, rest], rows[:, rest])
    expected = naive.rebuilt(scaled, z, gone)  # (60, n_gone), in deviations
    for k in range(20, 50):
        noise = normal.noise[(1000 + k) % len(normal.noise), gone]
        cells = train.mean(axis=0)[gone] + (expected[k] + noise) * train.std(axis=0)[gone]
        np.testing.assert_allclose(found[k, gone], cells, atol=1e-9)


def test_a_rebuilt_row_does_not_depend_on_its_chunk():
    normal, *_ = Normal.fit([together(600)])
    rows = together(90, seed=1)
    rows[10:70, 1] = np.nan
    rows[40:80, 4] = np.nan
    whole = normal.rebuild(rows, 0)
    parts = [normal.rebuild(rows[a : a + 13], a) for a in range(0, 90, 13)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_a_rebuilt_channel_follows_the_others_and_a_constant_one_stays():
    train, rows = together(2000), together(300, seed=1)
    train[:, 5] = rows[:, 5] = 3.0
    normal, *_ = Normal.fit([train])
    broken = rows.copy()
    broken[:, [2, 5]] = np.nan
    found = normal.rebuild(broken, 0)
    assert np.corrcoef(found[:, 2], rows[:, 2])[0, 1] > 0.95
    np.testing.assert_allclose(found[:, 5], 3.0, atol=1e-6)
    alone, *_ = Normal.fit([train[:, :1]])
    assert np.isfinite(alone.rebuild(np.full((4, 1), np.nan), 0)).all()


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-160, 1e90])
def test_units_of_any_size_give_the_same_scaled_rows(unit):
    rows = np.random.default_rng(0).normal(size=(200, 3))
    plain, other = Normal.units([rows]), Normal.units([rows * unit])
    np.testing.assert_allclose(other.scaled(rows * unit), plain.scaled(rows), rtol=1e-9, atol=1e-9)


@given(
    st.integers(0, 99),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.99, 0.999, 1.0]),
)
def test_medians_and_quantiles_have_the_bits_of_numpys(seed, n, share):
    rows = np.random.default_rng(seed).normal(size=(n, 3)).round(seed % 4)
    np.testing.assert_array_equal(medians(rows.T.copy()), np.median(rows, axis=0))
    wanted = np.quantile(rows, share, axis=0)
    np.testing.assert_array_equal(quantile(rows.T.copy(), share), wanted)
