"""Number of events at higher and lower limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.report.data import WhatIf

Array = NDArray[np.float64]

STEPS = 40  # limits that are tried above, and as many below


def what_if(
    evidence: Array,
    limit: float | Array,
    rules: Rules,
    events: NDArray[np.intp],
    *,
    first: int = 0,
) -> list[WhatIf]:
    """How many events higher and lower limits would give, by rising shift.

    `events` (k, 2) are the rows [start, end) of those that there are: a higher limit keeps those
    whose evidence rises above it, a lower one adds stretches away from them.
    """
    above = np.asarray(evidence, dtype=np.float64) - limit  # (n,)
    above[:first] = np.nan
    known = above[np.isfinite(above)]
    if not len(known):
        return []
    low, high = min(float(np.median(known)), 0.0), max(float(known.max()), 0.0)
    if not high > low:
        return []
    peaks = [float(np.nanmax(above[a:b], initial=0.0)) for a, b in events.tolist()]
    taken = np.zeros(len(above) + 1, np.intp)  # rows of events before each
    for start, end in events.tolist():
        taken[start + 1 : end + 1] += 1
    taken = np.cumsum(taken)

    def count(shift: float) -> int:
        if shift >= 0:
            return sum(peak > shift for peak in peaks) if shift else len(peaks)
        start, end = runs_above(above, shift, rules).T
        return len(peaks) + int((taken[start] == taken[end]).sum())

    closer = np.linspace(0, 1, STEPS) ** 2  # to the limit the closer, where most depends
    shifts = np.unique([*(low * closer), *(high * closer)])
    return [WhatIf(shift, count(shift), "") for shift in shifts.tolist()]
