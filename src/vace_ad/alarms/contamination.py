"""Does the training part itself hold anomalies? Scores far beyond what its bulk leads to expect."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.alarms.tail import Pareto

# Suspicious stretches expected in clean training rows, if their tail is as guessed.
_FALSE = 1e-2


def suspicious_stretches(scores: NDArray[np.float64], spacing: int = 1) -> NDArray[np.intp]:
    """Row ranges [start, end) of calibration scores that look anomalous, shape (k, 2).

    The tail is guessed from the quantiles at 80, 90 and 95 %, which a few anomalies hardly move:
    their distances grow by 2^ξ under a Pareto law (Pickands' estimator). It is taken at least as
    heavy as the exponential's.
    """
    known = scores[np.isfinite(scores)]
    if len(known) < 20:
        return np.empty((0, 2), dtype=np.intp)
    low, middle, high = np.quantile(known, (0.80, 0.90, 0.95))
    if not middle > low:
        return np.empty((0, 2), dtype=np.intp)
    pickands = float(np.log2(max(high - middle, 1e-12) / (middle - low)))
    xi = min(max(0.5 * pickands, 0.0), 0.25)  # noisy, so taken by half
    # Autocorrelated quantiles are uncertain: the scale may be a quarter larger.
    sigma = 1.25 * float(middle - low) / (np.log(2) if xi == 0 else (2**xi - 1) / xi)
    excursions = len(runs_above(scores, float(low), Rules()))  # independent chances, roughly
    limit = float(low) + Pareto(sigma, xi).excess(_FALSE / excursions)
    return runs_above(scores, limit, Rules(join=spacing))
