"""Summary of the calibration scores, from which thresholds are derived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.decluster import find_clusters, ranks_below
from vace_ad.alarms.gpd import Pareto, Tail, fit_pareto
from vace_ad.alarms.runs import Rules, group_rows
from vace_ad.errors import ModelFileError

# Highest rows kept for counting events: a tenth of the sample, within these bounds.
_KEEP_SHARE, _KEEP_LEAST, _KEEP_MOST = 0.1, 2_000, 20_000

# Suspicious rows are left out up to this share of the sample; more of them is how it is.
_LEAVE_OUT_MOST = 0.1


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
    spacing: int  # rows nearer than this share evidence
    suspicious: NDArray[np.int64]  # (j, 2) row ranges [start, end) that stand out

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64], spacing: int = 1) -> Calibration:
        """Learn from scores of training rows in time order; NaN where a row has none.

        `spacing` is how many rows share evidence: the patch length. Stretches that stand out far
        from all others are named. They are anomalies in the training part, or something normal
        that it holds only once, which statistics that did not see it find strange and the
        finished detector will not; so they are left out, unless they are much of the sample.
        """
        sample = np.array(scores, dtype=np.float64)
        plain = cls._of(sample, spacing, np.empty((0, 2), dtype=np.int64))
        found = find_clusters(plain.rows, plain.scores, plain.n_rows, spacing).suspicious()
        suspicious = np.sort(found, axis=0).astype(np.int64)
        if np.diff(suspicious).sum() > _LEAVE_OUT_MOST * plain.n_rows:
            return replace(plain, suspicious=suspicious)
        for start, end in suspicious.tolist():
            sample[start:end] = np.nan
        return cls._of(sample, spacing, suspicious) if len(suspicious) else plain

    @classmethod
    def _of(
        cls, sample: NDArray[np.float64], spacing: int, suspicious: NDArray[np.int64]
    ) -> Calibration:
        tail = Tail.fit(sample, spacing)
        known = np.flatnonzero(np.isfinite(sample))
        keep = min(max(int(_KEEP_SHARE * len(known)), _KEEP_LEAST), _KEEP_MOST, len(known))
        top = np.argpartition(sample[known], -keep)[-keep:]
        rows = np.sort(known[top]).astype(np.int64)
        return cls(len(known), rows, sample[rows], tail, spacing, suspicious)

    def count(self, threshold: float, rules: Rules) -> int:
        """How many events the calibration rows hold above a threshold."""
        return len(group_rows(self.rows[self.scores > threshold].astype(np.intp), rules))

    def threshold_for(self, events: float, rules: Rules) -> float:
        """The threshold above which so many events are expected in `n_rows` normal rows.

        Counted where the sample holds enough events; beyond, from a Pareto law of the peaks of
        its highest independent clusters, times the events that a cluster makes under the rules.
        """
        level, peaks, _ = find_clusters(self.rows, self.scores, self.n_rows, self.spacing)
        split = self._split(peaks, rules)
        if events >= split * len(peaks):
            return self._count_down(events, level, rules)
        law = fit_pareto(peaks - level, len(peaks))
        return level + law.excess(events / (split * len(peaks)))

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
        for rank in ranks_below(len(ranked)):
            if self.count(float(ranked[rank]), rules) >= events:
                return float(ranked[rank])
        return float(self.scores.min())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays, for the model file; see `LAYOUT`."""
        tail, law = self.tail, self.tail.law
        numbers = [self.n_rows, self.spacing, tail.level, tail.share, law.sigma, law.xi]
        return {
            "rows": self.rows,
            "scores": self.scores,
            "knots": tail.knots,
            "shares": tail.shares,
            "suspicious": self.suspicious,
            "numbers": np.array(numbers, dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Calibration:
        """The reverse of `to_arrays`, with its shapes checked."""
        try:
            rows, scores = arrays["rows"], arrays["scores"]
            knots, shares = arrays["knots"], arrays["shares"]
            suspicious = arrays["suspicious"]
            n_rows, spacing, level, share, sigma, xi = arrays["numbers"].tolist()
        except (KeyError, ValueError) as error:
            raise ModelFileError(
                f"the model's calibration is incomplete ({error}); fit and save it again"
            ) from error
        sound = rows.shape == scores.shape and knots.shape == shares.shape and suspicious.ndim == 2
        if not sound or not sigma > 0 or len(rows) == 0 or len(knots) == 0:
            raise ModelFileError("the model's calibration does not fit together; fit it again")
        tail = Tail(knots, shares, level, share, Pareto(sigma, xi))
        return cls(int(n_rows), rows, scores, tail, int(spacing), suspicious)


# What `to_arrays` gives, in safetensors' words: type, and shape with None for any length.
LAYOUT: dict[str, tuple[str, tuple[int | None, ...]]] = {
    "rows": ("I64", (None,)),
    "scores": ("F64", (None,)),
    "knots": ("F64", (None,)),
    "shares": ("F64", (None,)),
    "suspicious": ("I64", (None, 2)),
    "numbers": ("F64", (6,)),
}
