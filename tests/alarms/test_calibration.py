from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import genpareto, norm

from alarms.processes import PATCH, PROCESSES
from vace_ad.alarms.calibration import Calibration, Pareto, Tail, fit_pareto
from vace_ad.errors import InputError


@pytest.mark.parametrize("xi", [-0.3, 0.0, 0.4])
def test_pareto_is_scipys(xi: float) -> None:
    law, oracle = Pareto(2.0, xi), genpareto(xi, scale=2.0)
    y = np.linspace(0, 20, 50)
    np.testing.assert_allclose(law.survival(y), oracle.sf(y), atol=1e-12)
    for p in (0.5, 1e-3, 1e-6):
        np.testing.assert_allclose(law.excess(p), oracle.isf(p), rtol=1e-9)


@pytest.mark.parametrize("xi", [-0.3, 0.0, 0.3])
def test_fit_finds_the_law_of_many_excesses(xi: float) -> None:
    y = genpareto(xi, scale=2.0).rvs(5000, random_state=0)
    law = fit_pareto(y, len(y))
    assert law.xi == pytest.approx(xi, abs=0.08)
    assert law.sigma == pytest.approx(2.0, rel=0.1)


def test_few_excesses_are_drawn_to_a_cautious_exponential() -> None:
    y = genpareto(-0.4, scale=1.0).rvs(5, random_state=1)
    assert fit_pareto(y, 5).xi > 0


def test_probability_of_independent_scores() -> None:
    sample = np.random.default_rng(0).normal(size=200_000)
    tail = Tail.fit(sample)
    for s in (-1.0, 0.0, 2.0, 3.0, 4.0):
        assert float(tail.probability(s)) == pytest.approx(norm.sf(s), rel=0.4), s
    for p in (0.5, 0.01, 1e-4, 1e-6):
        assert tail.quantile(p) == pytest.approx(norm.isf(p), abs=0.35), p


@pytest.mark.parametrize("name", PROCESSES)
def test_probabilities_of_new_scores_of_the_same_process(name: str) -> None:
    process = PROCESSES[name]
    shares = []
    for seed in range(10):
        tail = Tail.fit(process(20_000, np.random.default_rng(seed)), PATCH)
        fresh = process(20_000, np.random.default_rng(1000 + seed))
        shares.append([(fresh > tail.quantile(p)).mean() / p for p in (0.1, 0.01, 0.001)])
    # Beyond the sample the law is on the careful side, so it may promise too much, not too little.
    assert np.all(np.mean(shares, axis=0) < 2), np.mean(shares, axis=0)
    assert np.all(np.mean(shares, axis=0) > (0.7, 0.7, 0.25)), np.mean(shares, axis=0)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=300),
    st.integers(1, 100),
    st.floats(-1e7, 1e7),
    st.floats(-1e7, 1e7),
)
def test_probability_is_one_and_falling(
    sample: list[float], spacing: int, a: float, b: float
) -> None:
    tail = Tail.fit(np.array(sample), spacing)
    low, high = sorted((a, b))
    p_low, p_high = tail.probability([low, high])
    assert 0 < p_high <= p_low <= 1
    assert tail.probability(min(sample)) == 1


def test_quantile_undoes_probability() -> None:
    tail = Tail.fit(np.random.default_rng(0).exponential(size=5000), 10)
    for p in (0.9, 0.3, 0.02, 1e-3, 1e-9):
        assert float(tail.probability(tail.quantile(p))) == pytest.approx(p, rel=0.05)


def test_constant_scores_nan_and_too_few() -> None:
    tail = Tail.fit(np.full(100, 3.0))
    assert tail.probability(3.0) == 1
    assert 0 < float(tail.probability(4.0)) < 0.1
    assert np.isnan(tail.probability(np.nan))
    assert Tail.fit(np.array([np.nan, 1.0, 2.0, np.nan])).probability(0.0) == 1
    with pytest.raises(InputError, match="1 calibration scores"):
        Tail.fit(np.array([1.0, np.nan]))


@pytest.mark.parametrize("n", [2, 3, 100, 5000])
def test_any_length_gives_rising_thresholds(n: int) -> None:
    calibration = Calibration.from_scores(np.random.default_rng(n).normal(size=n), 10)
    thresholds = [calibration.tail.quantile(share) for share in (1e-6, 1e-3, 0.1, 0.9)]
    assert np.isfinite(thresholds).all()
    assert thresholds == sorted(thresholds, reverse=True)


def test_scores_that_do_not_vary() -> None:
    calibration = Calibration.from_scores(np.ones(1000), PATCH)
    assert np.isfinite(calibration.tail.quantile(1e-4))
    assert calibration.tail.quantile(1e-4) >= 1
