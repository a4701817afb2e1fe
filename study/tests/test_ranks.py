"""Ranks, Holm's correction and groups, against small cases by hand and other packages."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, wilcoxon
from statsmodels.stats.multitest import multipletests

from vace_ad.errors import ConfigError
from vace_study.ranks import Ranking, holm, rank


def made(n_series=30, seed=0, **levels):
    """Methods whose values differ by these levels, with noise."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n_series)
    return {
        name: {f"s{i}": common[i] + level + 0.5 * rng.normal() for i in range(n_series)}
        for name, level in levels.items()
    }


def test_ranks_by_hand():
    values = {
        "a": {"1": 3, "2": 3, "3": 3, "4": 1, "5": 2, "6": 9},  # only a has series 6
        "b": {"1": 2, "2": 2, "3": 3, "4": 2, "5": 2},
        "c": {"1": 1, "2": 1, "3": 1, "4": 3, "5": 2},
    }
    found = rank(values)
    # Ranks of a: 1, 1, 1.5, 3, 2; of b: 2, 2, 1.5, 2, 2; of c: 3, 3, 3, 1, 2.
    assert dict(zip(found.methods, found.ranks, strict=True)) == pytest.approx(
        {"a": 1.7, "b": 1.9, "c": 2.4}
    )
    assert found.methods == ("a", "b", "c")
    assert found.n_series == 5


def test_p_values_equal_those_of_other_packages():
    values = made(a=0, b=0.1, c=1.5, d=1.6)
    found = rank(values)
    rows = {name: np.array(list(each.values())) for name, each in values.items()}
    assert found.friedman_p == pytest.approx(friedmanchisquare(*rows.values()).pvalue)
    pairs = list(combinations(found.methods, 2))
    raw = [wilcoxon(rows[a], rows[b]).pvalue for a, b in pairs]
    expected = multipletests(raw, method="holm")[1]
    assert [found.pair_p[pair] for pair in pairs] == pytest.approx(expected)
    assert found.differ("a", "d")
    assert found.differ("d", "a")
    assert not found.differ("a", "b")
    assert found.groups == [("d", "c"), ("b", "a")]


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def test_groups_overlap_but_do_not_contain_each_other():
    close = {("a", "b"): 0.5, ("b", "c"): 0.5, ("a", "c"): 0.01}
    found = Ranking(("a", "b", "c"), (1.2, 1.9, 2.9), 9, 0.001, close, 0.05)
    assert found.groups == [("a", "b"), ("b", "c")]
    same = Ranking(("a", "b", "c"), (1.2, 1.9, 2.9), 9, 0.001, dict.fromkeys(close, 0.5), 0.05)
    assert same.groups == [("a", "b", "c")]


def test_without_an_overall_difference_no_pair_differs():
    close = {("a", "b"): 0.001}
    assert Ranking(("a", "b"), (1.2, 1.8), 9, 0.2, close, 0.05).groups == [("a", "b")]


def test_equal_methods_are_one_group():
    values = made(a=0)
    found = rank({"a": values["a"], "b": values["a"], "c": values["a"]})
    assert found.friedman_p == 1
    assert found.ranks == (2, 2, 2)
    assert found.groups == [("a", "b", "c")]


def test_two_methods_are_one_question():
    found = rank(made(a=0, b=2))
    assert found.friedman_p == found.pair_p["b", "a"] < 0.05
    assert found.groups == []


def test_too_few_methods_or_series():
    with pytest.raises(ConfigError, match="1 methods came"):
        rank(made(a=0))
    with pytest.raises(ConfigError, match="share 4 series"):
        rank(made(4, a=0, b=1))
