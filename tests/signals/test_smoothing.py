"""Evidence of single rows, averaged over the rows around, against loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from vace_ad.signals import smoothing
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.smoothing import PastAverage, SpreadEvidence

USUAL, HALF_LIFE, WIDTH = 0.3, 20, 8


@given(n=st.integers(0, 60), half_life=st.floats(0.5, 100), cut=st.integers(0, 60))
def test_it_equals_loops_and_cuts_do_not_matter(n, half_life, cut):
    values = np.random.default_rng(n).normal(size=(n, 2))
    start = np.array([0.5, 0.0])
    whole, parts = PastAverage(start, half_life), PastAverage(start, half_life)
    got = whole.add(values)
    assert got.shape == values.shape
    expected, last = naive.past_average(values, start, half_life)
    np.testing.assert_allclose(got, expected.reshape(n, 2), atol=1e-12)
    np.testing.assert_allclose(whole.value, last, atol=1e-12)
    cuts = np.concatenate([parts.add(values[:cut]), parts.add(values[cut:])])
    np.testing.assert_array_equal(cuts, got)
    np.testing.assert_array_equal(parts.value, whole.value)


@pytest.mark.parametrize("half_life", [1, 3, 8000])
def test_it_stays_exact_across_fresh_starts(half_life, monkeypatch):
    monkeypatch.setattr(smoothing, "_LONGEST", 64)
    values = 1e3 + np.random.default_rng(0).normal(size=(1000, 1))
    expected, _ = naive.past_average(values, np.zeros(1), half_life)
    whole = PastAverage(np.zeros(1), half_life).add(values)
    np.testing.assert_allclose(whole, expected, rtol=1e-11, atol=1e-11)
    average = PastAverage(np.zeros(1), half_life)
    single = [average.add(value[None]) for value in values]
    np.testing.assert_array_equal(np.concatenate(single), whole)


def test_a_step_halves_after_the_half_life_and_its_own_value_does_not_enter():
    average = PastAverage(np.zeros(1), 10)
    found = average.add(np.ones((21, 1)))[:, 0]
    assert found[0] == 0
    np.testing.assert_allclose(found[[10, 20]], [0.5, 0.75], atol=1e-12)


def test_an_average_goes_on_from_its_state_with_the_same_bits():
    values = np.random.default_rng(0).normal(size=(50, 3))
    whole = PastAverage(np.zeros(3), 5).add(values)
    first, second = PastAverage(np.zeros(3), 5), PastAverage(np.ones(3), 5)
    first.add(values[:23])
    second.resume(first.state())
    np.testing.assert_array_equal(second.add(values[23:]), whole[23:])


class Plain(SpreadEvidence):
    """The first channel is the evidence."""

    def __init__(self, live: bool = False) -> None:
        plain = Normal(np.zeros(1), np.ones(1), np.eye(1), np.zeros((1, 1)))
        super().__init__(plain, np.array([USUAL]), HALF_LIFE, WIDTH, live)

    def _found(self, scaled):
        return scaled[:, 0]


def values(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=(n, 1))


def weighed(rows: np.ndarray) -> np.ndarray:
    """Evidence as it counts, before it is spread."""
    used, _ = naive.past_average(rows[:, 0], USUAL, HALF_LIFE)
    return rows[:, 0] / (1 + used)


@given(n=st.integers(1, 40), cuts=st.lists(st.integers(0, 40), max_size=5).map(sorted))
def test_a_stream_equals_loops_with_the_same_bits_in_any_chunks(n, cuts):
    rows = values(n)
    whole = Plain()
    expected = np.concatenate([whole.add(rows), whole.end()], axis=1)
    np.testing.assert_allclose(expected[0], naive.spread(weighed(rows), WIDTH))
    parts = Plain()
    done = [parts.add(part) for part in np.split(rows, cuts)]
    np.testing.assert_array_equal(np.concatenate([*done, parts.end()], axis=1), expected)


@pytest.mark.parametrize("cut", [1, 3, 30])
def test_means_do_not_reach_across_a_cut_but_what_is_usual_does(cut):
    rows = values(60)
    evidence = Plain()
    done = []
    for part in (rows[:cut], rows[cut:]):
        done += [evidence.add(part), evidence.end()]
    line = weighed(rows)
    expected = [*naive.spread(line[:cut], WIDTH), *naive.spread(line[cut:], WIDTH)]
    np.testing.assert_allclose(np.concatenate(done, axis=1)[0], expected)


@pytest.mark.parametrize("size", [1, 3, 60])
def test_provisional_means_are_of_the_rows_up_to_each(size):
    rows = values(60)
    evidence, now = Plain(live=True), []
    for a in range(0, 60, size):
        evidence.add(rows[a : a + size])
        now += evidence.now[0].tolist()
    line, half = weighed(rows), WIDTH // 2
    expected = [np.mean(line[max(0, t - half) : t + 1]) for t in range(60)]
    np.testing.assert_allclose(now, expected)


@pytest.mark.parametrize("cut", [1, 3, 4, 20])
def test_a_state_goes_on_with_the_same_bits(cut):
    rows = values(50)
    first, second = Plain(live=True), Plain(live=True)
    first.add(rows[:cut])
    second.resume(first.state())
    for evidence in (first, second):
        evidence.rest = np.concatenate([evidence.add(rows[cut:]), evidence.end()], axis=1)
    np.testing.assert_array_equal(second.rest, first.rest)
    np.testing.assert_array_equal(second.now, first.now)
