"""What a signal has been used to: an exponential average of the past alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def past_average(values: Array, state: Array, half_life: float) -> tuple[Array, Array]:
    """The average before each step, (n, ...), and the state after the last.

    `state` (...) is the average before the first step, `half_life` counts steps. A step's own
    value never enters its average, so a surprise is measured against what came before it; and
    the result is the same however the steps are cut into calls.
    """
    if len(values) == 0:  # for which lfilter leaves the state undefined
        return values, state
    from scipy.signal import lfilter  # slow to import, so only where rows are scored

    keep = 0.5 ** (1 / half_life)
    averages, last = lfilter([0, 1 - keep], [1, -keep], values, axis=0, zi=state[None])
    return averages, last[0]
