"""What was nearly an event, and what another threshold would have given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.events import Event
from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.report.data import WhatIf

if TYPE_CHECKING:
    from vace_ad.alarms.detection import Detection

Array = NDArray[np.float64]

NEAR_MISSES = 5  # named at most
PLAIN = 0.05  # a stretch that more normal rows than this score as high as is nothing to look at
STEPS = 40  # thresholds that are tried above, and as many below
DAY = 86_400.0  # seconds


def near_misses(
    found: Detection, calibration: Calibration | None, *, first: int = 0, join: int = 0
) -> list[Event]:
    """The strongest stretches below the threshold, in order of row.

    A stretch reaches as far as scores stay above the middle between their median and its peak.
    The strongest is always named, others only where few normal rows score as high.
    """
    left = found.scores.astype(np.float64)  # (n,) what has not been named yet
    left[:first] = np.nan
    for event in found.events:
        left[max(0, event.start - join) : event.end + join] = np.nan
    if np.isnan(left).all():
        return []
    median = float(np.nanmedian(left))
    named: list[Event] = []
    while len(named) < NEAR_MISSES and not np.isnan(left).all():
        peak = int(np.nanargmax(left))
        score = float(left[peak])
        p = float("nan") if calibration is None else float(calibration.tail.probability(score))
        if score <= median or (named and not p <= PLAIN):
            break
        start, end = _around(left, peak, (median + score) / 2)
        named.append(Event(start, end, peak, score=score, probability=p))
        left[max(0, start - join) : end + join] = np.nan
        left[start:end] = np.nan
    return sorted(named, key=lambda event: event.start)


def _around(scores: Array, peak: int, level: float) -> tuple[int, int]:
    """The rows [start, end) around a peak that stay above a level."""
    low = ~(scores > level)
    before, after = np.flatnonzero(low[:peak]), np.flatnonzero(low[peak:])
    start = int(before[-1]) + 1 if len(before) else 0
    return start, peak + int(after[0]) if len(after) else len(scores)


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
    middle = float(np.median(threshold))
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
