from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.alarms.constants import BUDGET_SHARES
from vace_ad.alarms.evidence import UNIT
from vace_ad.alarms.scan import NEVER, Limits, Tails
from vace_ad.alarms.severity import LEVELS, level, probability, severity, upper_bound

TOPS = st.integers(1, 10**7)


def tails(n_rows: int = 4_000, n_channels: int = 2) -> Tails:
    n_lines = 4 * n_channels + 3
    rng = np.random.default_rng(0)
    nats = [np.asarray(rng.exponential(1.0, (n_rows, n_lines)) * UNIT, np.int64)]
    return Tails.fit(nats, np.zeros(n_lines, bool), n_channels)


TAILS = tails()


@given(TOPS, TOPS)
def test_a_louder_line_is_never_less_severe(a: int, b: int) -> None:
    weak, strong = sorted((a, b))
    common, rare = probability(TAILS, {0: weak}), probability(TAILS, {0: strong})
    assert 0 < rare <= common <= 1
    assert 0 <= severity(common) <= severity(rare) < 100


def test_the_strongest_line_counts() -> None:
    alone = probability(TAILS, {1: 300 * UNIT})
    assert probability(TAILS, {0: 5 * UNIT, 1: 300 * UNIT, 8: UNIT}) == alone


@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1e-5])
def test_at_the_limit_of_a_budget_the_probability_is_about_that_budget(rate: float) -> None:
    limits = Limits(TAILS, rate)
    for line in range(len(TAILS.level)):
        found = probability(TAILS, {line: int(limits.limit[line])})
        assert found == pytest.approx(rate, rel=0.2)


def test_strong_events_are_told_apart() -> None:
    found = [severity(probability(TAILS, {0: top * UNIT})) for top in (30, 100, 300, 1_000, 3_000)]
    assert np.diff(found).min() > 1
    assert max(found) < 99


def test_evidence_is_no_rarer_than_the_nats_that_it_amounts_to() -> None:
    steep = replace(TAILS, excess=np.full_like(TAILS.excess, 1.0))
    shares = BUDGET_SHARES * 2  # of a line of one of two channels
    assert probability(steep, {0: 20 * UNIT}) == pytest.approx(shares * np.exp(-20))


def test_idle_lines_do_not_count() -> None:
    level = TAILS.level.copy()
    level[1] = NEVER
    some = replace(TAILS, level=level)  # one line of its kind is left
    assert probability(some, {0: 50 * UNIT}) == pytest.approx(
        probability(TAILS, {0: 50 * UNIT}) / 2
    )


def test_fewer_rows_leave_more_doubt() -> None:
    assert upper_bound(1e-30, 4_176) == pytest.approx(3.84 / 4_176, rel=0.01)
    assert upper_bound(1e-30, 400) > upper_bound(1e-30, 4_000)
    assert 0.01 < upper_bound(0.01, 10_000) < 0.0125
    assert upper_bound(0.5, 1) == 1


@given(st.floats(1e-12, 1.0), st.integers(1, 10**6))
def test_the_bound_is_above_what_it_bounds(p: float, n_rows: int) -> None:
    assert p <= upper_bound(p, n_rows) <= 1


def test_severity_scale() -> None:
    assert severity(1.0) == 0
    assert severity(1e-6) == pytest.approx(50)
    assert severity(1e-24) == pytest.approx(80)
    assert severity(1e-300) < 100


@pytest.mark.parametrize(
    ("decades", "word"),
    [(0.0, "low"), (5.9, "low"), (6.1, "medium"), (11.9, "medium"), (12.1, "high"), (23.9, "high"),
     (24.1, "critical"), (250.0, "critical")],
)  # fmt: skip
def test_words_by_decades(decades: float, word: str) -> None:
    assert level(severity(10.0**-decades)) == word


def test_words_rise_and_none_is_left_out() -> None:
    words = [level(s) for s in np.linspace(0, 100, 1001)]
    places = [LEVELS.index(word) for word in words]
    assert places == sorted(places)
    assert set(words) == set(LEVELS)
