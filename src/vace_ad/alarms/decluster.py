"""Declustering: independent clusters of high scores, one observation each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.gpd import Pareto
from vace_ad.alarms.runs import Rules, group_rows

# Clusters looked for: a tenth of those that could be, within these bounds.
_WANTED = (15, 30)

# A cluster is suspicious when a tail as heavy as ξ = 0.2, with the mean of the clusters below it,
# would bring one so high in this share of clean samples; a few clusters tell nothing.
_SUSPICIOUS_XI, _SUSPICIOUS_SHARE, _FEWEST = 0.2, 0.01, 8


class Clusters(NamedTuple):
    """Clusters of rows above a level, highest peak first."""

    level: float
    peaks: NDArray[np.float64]  # (k,), falling
    runs: NDArray[np.intp]  # (k, 2) half-open row ranges

    def suspicious(self) -> NDArray[np.intp]:
        """Row ranges of clusters far above what all lower ones lead to expect, (j, 2).

        At most a quarter of the clusters: more of them are how the series is. All clusters down
        to the lowest that stands out are meant, so that two alike do not hide each other.
        """
        excess = self.peaks - self.level
        found = 0
        for j in range(len(excess) // 4):
            rest = excess[j + 1 :]
            if len(rest) < _FEWEST:
                break
            sigma = max(float(rest.mean()), 1e-12) * (1 - _SUSPICIOUS_XI)
            limit = Pareto(sigma, _SUSPICIOUS_XI).excess(_SUSPICIOUS_SHARE / len(excess))
            found = j + 1 if excess[j] > limit else found
        return self.runs[:found]


def find_clusters(
    rows: NDArray[np.int64], scores: NDArray[np.float64], n_rows: int, spacing: int
) -> Clusters:
    """Clusters among the highest rows of a sample: rows nearer than `spacing` belong together.

    The level is the highest with enough clusters above it, or else the one with most.
    """
    wanted = float(np.clip(n_rows / spacing / 10, *_WANTED))
    apart = Rules(join=spacing)
    ranked = np.sort(scores)[::-1]
    best, most = float(ranked[-1]), 0
    for rank in ranks_below(len(ranked)):
        level = float(ranked[rank])
        found = len(group_rows(rows[scores > level].astype(np.intp), apart))
        if found > most:
            best, most = level, found
        if found >= wanted:
            break
    inside = scores > best
    if not inside.any():  # all alike
        return Clusters(best, np.array([best]), np.empty((0, 2), dtype=np.intp))
    above = rows[inside].astype(np.intp)
    runs = group_rows(above, apart)
    peaks = np.maximum.reduceat(scores[inside], np.searchsorted(above, runs[:, 0]))
    order = np.argsort(-peaks, kind="stable")
    return Clusters(best, peaks[order], runs[order])


def ranks_below(n: int) -> list[int]:
    """Ranks 4, 5, 6 … below n, in steps that grow to an eighth."""
    ranks, rank = [], 4.0
    while rank < n:
        ranks.append(int(rank))
        rank = max(rank + 1, rank * 1.13)
    return ranks or [n - 1]
