"""What is kept of the calibration scores: enough to answer any question about alarms later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.runs import Rules, group_rows
from vace_ad.alarms.tail import Pareto, Tail, fit_pareto
from vace_ad.errors import ModelFileError

# Highest rows kept for counting events: a tenth of the sample, within these bounds.
_KEEP_SHARE, _KEEP_LEAST, _KEEP_MOST = 0.1, 2_000, 20_000

# Clusters that the law beyond the sample is fitted to: a tenth of those possible, within bounds.
_PEAKS = (15, 30)


@dataclass(frozen=True)
class Calibration:
    """The tail of the calibration scores, and the rows where they were highest.

    Row numbers of the highest scores are enough to count events for any threshold above the
    lowest of them under any rules, so the sample itself need not be kept.
    """

    n_rows: int  # calibration rows with a score
    rows: NDArray[np.int64]  # (k,) rows of the highest scores, rising
    scores: NDArray[np.float64]  # (k,) their scores
    tail: Tail
    spacing: int = 1  # rows nearer than this share evidence

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64], spacing: int = 1) -> Calibration:
        """Learn from scores of normal rows in time order; NaN where a row has none.

        `spacing` is how many rows share evidence: the patch length.
        """
        sample = np.asarray(scores, dtype=np.float64)
        tail = Tail.fit(sample, spacing)
        known = np.flatnonzero(np.isfinite(sample))
        keep = min(max(int(_KEEP_SHARE * len(known)), _KEEP_LEAST), _KEEP_MOST, len(known))
        top = np.argpartition(sample[known], -keep)[-keep:]
        rows = np.sort(known[top]).astype(np.int64)
        return cls(len(known), rows, sample[rows], tail, spacing)

    def count(self, threshold: float, rules: Rules) -> int:
        """How many events the calibration rows hold above a threshold."""
        return len(group_rows(self.rows[self.scores > threshold].astype(np.intp), rules))

    def threshold_for(self, events: float, rules: Rules) -> float:
        """The threshold above which so many events are expected in `n_rows` normal rows.

        Counted where the sample holds enough events; beyond, from a Pareto law of the peaks of
        its highest independent clusters, times the events that a cluster makes under the rules.
        """
        level, peaks = self._clusters()
        split = self._split(peaks, rules)
        if events >= split * len(peaks):
            return self._count_down(events, level, rules)
        law = fit_pareto(peaks - level, len(peaks))
        return level + law.excess(events / (split * len(peaks)))

    def _clusters(self) -> tuple[float, NDArray[np.float64]]:
        """A high level and the peaks, falling, of the clusters of rows above it.

        Rows nearer than `spacing` are one cluster. The level is the highest with enough
        clusters, or else the one with most.
        """
        wanted = float(np.clip(self.n_rows / self.spacing / 10, *_PEAKS))
        apart = Rules(join=self.spacing)
        ranked = np.sort(self.scores)[::-1]
        best, most = float(ranked[-1]), 0
        for above in _growing(len(ranked)):
            found = self.count(float(ranked[above]), apart)
            if found > most:
                best, most = float(ranked[above]), found
            if found >= wanted:
                break
        inside = self.scores > best
        if not inside.any():  # all alike
            return best, np.array([best])
        rows = self.rows[inside].astype(np.intp)
        first = np.searchsorted(rows, group_rows(rows, apart)[:, 0])
        return best, np.sort(np.maximum.reduceat(self.scores[inside], first))[::-1]

    def _split(self, peaks: NDArray[np.float64], rules: Rules) -> float:
        """How many events a cluster makes, counted at levels between neighbouring peaks."""
        ranks = np.arange(2, len(peaks))  # below two peaks a count says little
        if len(ranks) < 2:
            return 1.0
        middles = (peaks[ranks - 1] + peaks[ranks]) / 2
        counted = sum(self.count(float(x), rules) for x in middles)
        return max(counted, 1) / float(ranks.sum())

    def _count_down(self, events: float, level: float, rules: Rules) -> float:
        """The highest threshold with at least so many events, from `level` down."""
        ranked = np.sort(self.scores[self.scores <= level])[::-1]
        for above in _growing(len(ranked)):
            if self.count(float(ranked[above]), rules) >= events:
                return float(ranked[above])
        return float(self.scores.min())

    def to_arrays(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Everything as arrays, for the model file."""
        tail = self.tail
        law = tail.law
        numbers = [self.n_rows, self.spacing, tail.level, tail.share, law.sigma, law.xi]
        return {
            "rows": self.rows,
            "scores": self.scores,
            "knots": tail.knots,
            "shares": tail.shares,
            "numbers": np.array(numbers, dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.float64]]) -> Calibration:
        """The reverse of `to_arrays`, with its shapes checked."""
        try:
            rows, scores = arrays["rows"].astype(np.int64), arrays["scores"]
            knots, shares = arrays["knots"], arrays["shares"]
            n_rows, spacing, level, share, sigma, xi = arrays["numbers"].tolist()
        except (KeyError, ValueError) as error:
            raise ModelFileError(
                f"the model's calibration is incomplete ({error}); fit and save it again"
            ) from error
        if rows.shape != scores.shape or knots.shape != shares.shape or not sigma > 0:
            raise ModelFileError("the model's calibration does not fit together; fit it again")
        tail = Tail(knots, shares, level, share, Pareto(sigma, xi))
        return cls(int(n_rows), rows, scores, tail, int(spacing))


def _growing(n: int) -> list[int]:
    """Ranks 4, 5, 6, 7, 9, 11 … below n, each about an eighth further."""
    ranks, rank = [], 4.0
    while rank < n:
        ranks.append(int(rank))
        rank = max(rank + 1, rank * 1.13)
    return ranks or [n - 1]
