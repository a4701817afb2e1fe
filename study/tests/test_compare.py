import numpy as np
import pytest

from vace_study.compare import paired


def test_a_clear_difference_and_a_chance_one(rng):
    names = [f"s{i}" for i in range(40)]
    base = dict(zip(names, rng.uniform(size=40), strict=True))
    better = {name: value + 0.1 + 0.05 * rng.normal() for name, value in base.items()}
    same = {name: value + 0.2 * rng.normal() for name, value in base.items()}
    gap = paired(better, base)
    assert gap.clear
    assert gap.low < gap.mean < gap.high
    assert (gap.n, gap.wins + gap.losses) == (40, 40)
    assert not paired(same, base).clear


def test_the_interval_is_that_of_a_mean(rng):
    """For many series the bootstrap agrees with the normal interval."""
    gaps = rng.normal(0.3, 1.0, size=500)
    gap = paired({str(i): g for i, g in enumerate(gaps)}, {str(i): 0.0 for i in range(500)})
    half = 1.96 * gaps.std() / np.sqrt(500)
    assert gap.mean == pytest.approx(gaps.mean())
    assert gap.high - gap.low == pytest.approx(2 * half, rel=0.05)


def test_only_shared_series_count():
    gap = paired({"a": 1.0, "b": 0.0}, {"a": 0.5, "c": 9.0})
    assert (gap.mean, gap.n, gap.low, gap.clear) == (0.5, 1, None, False)
    assert paired({"a": 1.0}, {"c": 1.0}) is None


def test_the_same_numbers_give_the_same_interval():
    ours, theirs = {"a": 0.3, "b": 0.9, "c": 0.2}, {"a": 0.1, "b": 0.4, "c": 0.5}
    assert paired(ours, theirs) == paired(ours, theirs)
