from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.alarms.severity import LEVELS, chance, level, ratio_at, severity

RATES = st.floats(1e-7, 1e-2)
SPACINGS = st.integers(1, 500)


@given(RATES, SPACINGS)
def test_at_the_threshold_the_chance_is_the_budget(rate: float, spacing: int) -> None:
    assert chance(1.0, rate, spacing) == pytest.approx(rate)
    assert severity(chance(1.0, rate, spacing), rate) == pytest.approx(0, abs=1e-9)


@given(RATES, SPACINGS, st.floats(0.1, 50), st.floats(0.1, 50))
def test_stronger_is_rarer(rate: float, spacing: int, a: float, b: float) -> None:
    weak, strong = sorted((a, b))
    rarer, common = chance(strong, rate, spacing), chance(weak, rate, spacing)
    assert 0 < rarer <= common
    assert 0 <= severity(common, rate) <= severity(rarer, rate) < 100


def test_chance_is_its_formula() -> None:
    assert chance(1.5, 1e-4, 25) == pytest.approx(1e-4 * (25e-4) ** 0.5)
    assert chance(0.5, 1e-4, 25) == pytest.approx(1e-4 / (25e-4) ** 0.5)
    assert chance(1e6, 1e-4, 25) > 0  # never impossible


def test_severity_scale() -> None:
    assert severity(0.01, 0.01) == 0
    assert severity(0.001, 0.01) == pytest.approx(50)
    assert severity(1e-5, 0.01) == pytest.approx(75)
    assert severity(1e-300, 0.01) < 100
    assert severity(0.5, 0.01) == 0


@pytest.mark.parametrize(
    ("decades", "word"),
    [(0.0, "low"), (0.9, "low"), (1.1, "medium"), (1.9, "medium"), (2.1, "high"), (3.9, "high"),
     (4.1, "critical"), (250.0, "critical")],
)  # fmt: skip
def test_words_by_how_many_times_ten_rarer(decades: float, word: str) -> None:
    assert level(severity(1e-4 * 10.0**-decades, 1e-4)) == word


def test_words_rise_and_none_is_left_out() -> None:
    words = [level(s) for s in np.linspace(0, 100, 1001)]
    places = [LEVELS.index(word) for word in words]
    assert places == sorted(places)
    assert set(words) == set(LEVELS)


@given(RATES, RATES, st.integers(1, 40))
def test_the_ratio_of_another_budget_gives_that_budget(
    rate: float, other: float, spacing: int
) -> None:
    """Alarms with the ratio of another rate come as often as that rate says, a stretch."""
    ratio = ratio_at(rate, other, spacing)
    assert chance(ratio, rate, spacing) == pytest.approx(other, rel=1e-6)
    assert (ratio >= 1) == (other <= rate) or ratio == pytest.approx(1)
