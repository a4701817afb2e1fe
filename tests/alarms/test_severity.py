from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.alarms.severity import LEVELS, chance, level, severity

RATES = st.floats(1e-7, 1e-2)
ROWS = st.integers(100, 10**6)
MARGINS = st.floats(-5, 60)


@given(RATES)
def test_at_the_limit_the_chance_is_the_budget(rate: float) -> None:
    assert chance(0.0, rate, 10**6) == pytest.approx(rate)
    assert severity(chance(0.0, rate, 10**6), rate) == pytest.approx(0, abs=1e-9)


@given(RATES, ROWS, MARGINS, MARGINS)
def test_stronger_is_rarer(rate: float, n_rows: int, a: float, b: float) -> None:
    weak, strong = sorted((a, b))
    rarer, common = chance(strong, rate, n_rows), chance(weak, rate, n_rows)
    assert 0 < rarer <= common
    assert 0 <= severity(common, rate) <= severity(rarer, rate) < 100


def test_each_nat_makes_it_e_times_rarer() -> None:
    ratios = [chance(m, 1e-4, 10**6) / chance(m + 1, 1e-4, 10**6) for m in (-1.0, 0.0, 3.0)]
    assert ratios == pytest.approx([np.e] * 3)


def test_few_rows_cannot_show_how_rare_it_is() -> None:
    assert chance(500.0, 1e-4, 2_000) == pytest.approx(1 / 2e6)
    assert chance(500.0, 1e-4, 200) == pytest.approx(1 / 2e5)


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
