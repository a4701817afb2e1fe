from __future__ import annotations

import json

import numpy as np
import pytest

from vace_ad.alarms.pattern import POINTS, Pattern, filled
from vace_ad.alarms.suspects import DriftRange
from vace_ad.signals.baseline_model import Normal


def rows(n: int = 2000) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 3)) + np.array([0, 100, -5])


@pytest.fixture(scope="module")
def learned():
    return Normal.fit([rows()])[0], DriftRange.fit([rows()])


def test_a_pattern_holds_the_channels_that_left_and_how_far(learned) -> None:
    values = rows()
    values[900:940, 1] += 40
    pattern = Pattern.of("x", values, (905, 930), ("a", "b", "c"), *learned)
    assert pattern is not None
    assert pattern.channels == ("b",)
    assert pattern.length == 40  # grown to where the channel left and came back
    np.testing.assert_allclose(pattern.profile[:, 0], 40, atol=3)


def test_a_long_one_is_thinned_and_comes_back_from_its_plain_values(learned) -> None:
    values = rows()
    values[600:1500, 2] -= 50
    pattern = Pattern.of("x", values, (600, 1500), ("a", "b", "c"), *learned, 7.0)
    assert pattern is not None
    assert len(pattern.profile) == POINTS
    again = Pattern.from_plain("x", json.loads(json.dumps(pattern.to_plain())))
    assert (again.length, again.channels, again.ratio) == (900, ("c",), 7.0)
    np.testing.assert_allclose(again.profile, pattern.profile, rtol=1e-5)


def test_normal_rows_make_no_pattern(learned) -> None:
    assert Pattern.of("x", rows(), (900, 940), ("a", "b", "c"), *learned) is None


def test_missing_cells_have_the_last_known_value() -> None:
    values = np.array([[np.nan, 1.0], [2.0, np.nan], [np.inf, 3.0]])
    np.testing.assert_array_equal(filled(values, np.array([9.0, 9.0])), [[9, 1], [2, 1], [2, 3]])
