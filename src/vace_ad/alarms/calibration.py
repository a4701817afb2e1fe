"""Summary of the calibration scores, from which thresholds are derived."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.decluster import find_clusters
from vace_ad.alarms.gpd import Tail

# Highest rows kept to find clusters in: a tenth of the sample, within these bounds.
_KEEP_SHARE, _KEEP_LEAST, _KEEP_MOST = 0.1, 2_000, 20_000

# Suspicious rows are left out up to this share of the sample; more of them is how it is.
_LEAVE_OUT_MOST = 0.1


@dataclass(frozen=True)
class Calibration:
    """The tail of the calibration scores, and the rows where they were highest.

    Row numbers of the highest scores are enough to find what stands out, so the sample itself need
    not be kept.
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
