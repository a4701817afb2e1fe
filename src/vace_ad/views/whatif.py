"""What another threshold would have given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.report.data import WhatIf

Array = NDArray[np.float64]

STEPS = 40  # thresholds that are tried above, and as many below
DAY = 86_400.0  # seconds


def what_if(
    scores: Array,
    threshold: float | Array,
    rules: Rules,
    calibration: Calibration | None,
    *,
    first: int = 0,
    step_seconds: float | None = None,
) -> list[WhatIf]:
    """How many events higher and lower thresholds would give, by rising shift."""
    above = np.asarray(scores, dtype=np.float64) - threshold  # (n,)
    above[:first] = np.nan
    known = above[np.isfinite(above)]
    if not len(known):
        return []
    low, high = min(float(np.median(known)), 0.0), max(float(known.max()), 0.0)
    if not high > low:
        return []
    closer = np.linspace(0, 1, STEPS) ** 2  # to the threshold the closer, where most depends
    shifts = np.unique([*(low * closer), *(high * closer)])
    middle = float(np.nanmedian(threshold))
    return [
        WhatIf(
            shift,
            len(runs_above(above, shift, rules)),
            _expected(calibration, middle + shift, rules, step_seconds),
        )
        for shift in shifts.tolist()
    ]


def _expected(
    calibration: Calibration | None, level: float, rules: Rules, step_seconds: float | None
) -> str:
    """What a threshold gave on the held-out training rows, as a rate."""
    if calibration is None or level < float(calibration.scores.min()):
        return ""
    count = calibration.count(level, rules)
    if count == 0:
        return "no false alarm in the training rows"
    if not step_seconds:
        rate, span = count / calibration.n_rows * 10_000, "in 10,000 rows"
    else:
        rate, span = count / (calibration.n_rows * step_seconds) * 7 * DAY, "a week"
        if rate > 14:
            rate, span = rate / 7, "a day"
    return f"about {rate:.2g} false alarms {span}" if rate < 100 else f"{rate:,.0f} {span}"
