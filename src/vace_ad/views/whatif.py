"""What higher and lower limits would have given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.report.data import WhatIf

Array = NDArray[np.float64]

STEPS = 40  # limits that are tried above, and as many below


def what_if(evidence: Array, limit: float | Array, rules: Rules, *, first: int = 0) -> list[WhatIf]:
    """How many events higher and lower limits would give, by rising shift."""
    above = np.asarray(evidence, dtype=np.float64) - limit  # (n,)
    above[:first] = np.nan
    known = above[np.isfinite(above)]
    if not len(known):
        return []
    low, high = min(float(np.median(known)), 0.0), max(float(known.max()), 0.0)
    if not high > low:
        return []
    closer = np.linspace(0, 1, STEPS) ** 2  # to the limit the closer, where most depends
    shifts = np.unique([*(low * closer), *(high * closer)])
    return [WhatIf(shift, len(runs_above(above, shift, rules)), "") for shift in shifts.tolist()]
