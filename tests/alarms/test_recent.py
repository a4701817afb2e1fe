"""The scale of the recent past, against a loop over the rows."""

from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.recent import EVERY, FLOOR_SHARE, LEAST, PRIOR, WINDOW, standardised

SPACING, MIDDLE, SPREAD = 13, 1.5, 0.5


def plain(scores: np.ndarray) -> np.ndarray:
    """Each row by the scores before the last look, without those that share its evidence."""
    found = []
    for row, score in enumerate(scores):
        end = max(0, row - row % EVERY - SPACING)
        known = [x for x in scores[max(0, end - WINDOW) : end] if np.isfinite(x)]
        middle, spread = MIDDLE, SPREAD
        if len(known) >= LEAST:
            own = len(known) / (len(known) + PRIOR)
            half, tenth = np.quantile(known, 0.5), np.quantile(known, 0.9)
            middle = own * half + (1 - own) * MIDDLE
            spread = own * (tenth - half) + (1 - own) * SPREAD
        found.append((score - middle) / (spread + FLOOR_SHARE * SPREAD))
    return np.array(found)


@pytest.mark.parametrize("n", [0, 5, LEAST + SPACING, 1700])
def test_scores_are_measured_as_a_loop_does(n: int) -> None:
    rng = np.random.default_rng(n)
    scores = rng.exponential(size=n) + np.linspace(0, 3, n)
    scores[rng.integers(0, max(n, 1), n // 20)] = np.nan
    found = standardised(scores, MIDDLE, SPREAD, SPACING)
    np.testing.assert_allclose(found, plain(scores), rtol=1e-12)
