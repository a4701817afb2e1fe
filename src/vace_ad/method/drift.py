"""What a signal has been used to: an exponential average of the past alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Array = NDArray[np.float64]


def past_average(values: Array, state: Array, half_life: float) -> tuple[Array, Array]:
    """The average before each step, (n, ...), and the state after the last.

    `state` (...) is the average before the first step, `half_life` counts steps. A step's own
    value never enters its average, so a surprise is measured against what came before it; and
    the result is the same however the steps are cut into calls.
    """
    if len(values) == 0:  # for which lfilter leaves the state undefined
        return values, state
    keep = 0.5 ** (1 / half_life)
    averages, last = lfilter([0, 1 - keep], [1, -keep], values, axis=0, zi=state[None])
    return averages, last[0]


def weighed(evidence: Array, state: Array, half_life: float) -> tuple[Array, Array]:
    """Evidence (k, n) divided by one plus how much of it there usually is, and the state after."""
    usual, last = past_average(evidence.T, state, half_life)
    return np.asarray(evidence / (1 + usual.T)), last
