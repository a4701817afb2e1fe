"""Ranks of methods over the series that all have, and which of them cannot be told apart.

Friedman's test says whether any method differs. Only if it does are pairs compared, by Wilcoxon's
signed-rank test with Holm's correction (Benavoli et al., 2016: Nemenyi's test would let a pair's
verdict depend on the other methods in the comparison). Series of one data set are alike, and some
are the same series again, so the p-values are smaller than independent series would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from vace_ad.errors import ConfigError, needs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST_SERIES = 5


@dataclass(frozen=True)
class Ranking:
    """Methods by their mean rank, best first."""

    methods: tuple[str, ...]
    ranks: tuple[float, ...]  # mean over series; 1 is the best, equal values share a rank
    n_series: int
    friedman_p: float
    pair_p: Mapping[tuple[str, str], float]  # by Holm; pairs in the order of `methods`
    level: float

    def differ(self, one: str, other: str) -> bool:
        """Whether two methods can be told apart."""
        pair = (one, other) if (one, other) in self.pair_p else (other, one)
        return self.friedman_p < self.level and self.pair_p[pair] < self.level

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Runs of methods next to each other in rank, of which no two differ; none inside another.

        A run of one method says nothing and is left out.
        """
        found: list[tuple[int, int]] = []
        for first in range(len(self.methods)):
            last = first
            while last + 1 < len(self.methods) and not any(
                self.differ(self.methods[i], self.methods[last + 1]) for i in range(first, last + 1)
            ):
                last += 1
            if last > first and not any(a <= first and last <= b for a, b in found):
                found.append((first, last))
        return [self.methods[a : b + 1] for a, b in found]


def rank(values: Mapping[str, Mapping[str, float]], level: float = 0.05) -> Ranking:
    """Rank methods by their values (higher is better) on the series that all of them have."""
    import numpy as np

    with needs("scipy", "paper", "the ranking of methods"):
        from scipy.stats import friedmanchisquare, rankdata

    if len(values) < 2:
        raise ConfigError(f"{len(values)} methods came; ranks need at least 2")
    shared = sorted(set.intersection(*(set(each) for each in values.values())))
    if len(shared) < _LEAST_SERIES:
        raise ConfigError(
            f"the methods {', '.join(values)} share {len(shared)} series; ranks need at least "
            f"{_LEAST_SERIES}: leave out the method that has few"
        )
    table = np.array([[values[name][series] for series in shared] for name in values])
    ranks = rankdata(-table, axis=0).mean(axis=1)  # (n_methods,)
    order = np.argsort(ranks, kind="stable")
    names = [list(values)[i] for i in order]
    sorted_table = table[order]
    pairs = list(combinations(range(len(names)), 2))
    raw = [_wilcoxon(sorted_table[i], sorted_table[j]) for i, j in pairs]
    if len(names) == 2:
        overall = raw[0]  # with two methods there is one question only
    elif (table == table[0]).all():
        overall = 1.0
    else:
        overall = float(friedmanchisquare(*sorted_table).pvalue)
    adjusted = holm(raw)
    told = {(names[i], names[j]): p for (i, j), p in zip(pairs, adjusted, strict=True)}
    ranked = tuple(float(each) for each in ranks[order])
    return Ranking(tuple(names), ranked, len(shared), overall, told, level)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: the k-th smallest of m, k from 0, times m − k; they never fall."""
    m, highest = len(p_values), 0.0
    adjusted = [0.0] * m
    for k, i in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (m - k) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def _wilcoxon(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Two-sided; series where both are equal count for neither (Pratt)."""
    from scipy.stats import wilcoxon

    if (one == other).all():
        return 1.0
    return float(wilcoxon(one, other, zero_method="pratt").pvalue)
