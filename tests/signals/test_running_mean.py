"""The average of the past against loops, however its steps are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from vace_ad.signals import running_mean
from vace_ad.signals.running_mean import PastAverage


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
    monkeypatch.setattr(running_mean, "_LONGEST", 64)
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


def test_a_state_goes_on_with_the_same_bits():
    values = np.random.default_rng(0).normal(size=(50, 3))
    whole = PastAverage(np.zeros(3), 5).add(values)
    first, second = PastAverage(np.zeros(3), 5), PastAverage(np.ones(3), 5)
    first.add(values[:23])
    second.resume(first.state())
    np.testing.assert_array_equal(second.add(values[23:]), whole[23:])
