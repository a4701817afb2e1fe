from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from vace_ad.signals.incremental import merged_edges, merged_quantile

EDGE = 0.01


def naive_quantile(share, weight, old_below, new, low, high):
    """Where so many of old and new values lie below, by a fine grid."""
    grid = np.linspace(low, high, 200_001)
    below = (1 - weight) * old_below(grid) + weight * np.searchsorted(
        np.sort(new), grid, side="right"
    ) / len(new)
    return grid[np.argmax(below >= share)]


@pytest.mark.parametrize("shift", [0.0, 3.0, -8.0])
@pytest.mark.parametrize("weight", [0.02, 0.3, 0.5])
def test_edges_are_those_of_the_mixture(shift: float, weight: float, rng) -> None:
    new = rng.normal(shift, 0.5, size=(400, 1))
    z = norm.ppf(1 - EDGE)
    found = merged_edges(np.array([-z]), np.array([z]), new, weight, EDGE)
    for edge, share in zip(found, (EDGE, 1 - EDGE), strict=True):
        wanted = naive_quantile(share, weight, norm.cdf, new[:, 0], -12, 12)
        assert edge[0] == pytest.approx(wanted, abs=2e-4)


def test_the_same_values_leave_the_edges_where_they_are(rng) -> None:
    values = rng.normal(size=(20_000, 3)) * [1, 5, 0.1] + [0, 9, 3]
    low, high = np.quantile(values, [EDGE, 1 - EDGE], axis=0)
    found = merged_edges(low, high, values, 0.5, EDGE)
    np.testing.assert_allclose(found[0], low, atol=0.02 * 5)
    np.testing.assert_allclose(found[1], high, atol=0.02 * 5)


@pytest.mark.parametrize("weight", [0.05, 0.5])
def test_one_quantile_with_an_exponential_tail(weight: float, rng) -> None:
    new = np.abs(rng.normal(size=(5000, 2))) * [1.0, 4.0]
    found = merged_quantile(np.array([2.0, 2.0]), new, weight, 0.999)
    for k in range(2):
        wanted = naive_quantile(0.999, weight, lambda x: 1 - 0.001 ** (x / 2.0), new[:, k], 0, 30)
        assert found[k] == pytest.approx(wanted, abs=3e-4)
