"""How strong an alarm is, in one unit: how often normal data would show one as strong.

At the threshold that is the budget itself, by definition. Beyond it, peaks of independent stretches
fall off exponentially: if `ratio` is evidence over threshold and `rate` the budget in alarms a row,
alarms as strong come at `rate · (rate · spacing)^(ratio − 1)` a row.
"""

from __future__ import annotations

import numpy as np

LEVELS = ("low", "medium", "high", "critical")
_DECADES = (1.0, 2.0, 4.0)  # times ten rarer than the budget at which the next level begins
_RAREST = 1e-300


def chance(ratio: float, rate: float, spacing: int) -> float:
    """Alarms a row, in normal data, with at least this ratio of evidence to threshold."""
    alone = min(rate * spacing, 0.5)  # the budget in alarms a stretch of rows that share evidence
    return float(max(rate * alone ** (ratio - 1), _RAREST))


def ratio_at(rate: float, other: float, spacing: int) -> float:
    """The ratio, under a budget of `rate`, of alarms that come at another rate."""
    return float(np.log(min(other * spacing, 0.5)) / np.log(min(rate * spacing, 0.5)))


def severity(chance: float, rate: float) -> float:
    """From 0 at the budget towards 100: 50 for ten times rarer, 75 for a thousand times."""
    decades = max(float(np.log10(rate) - np.log10(chance)), 0.0)
    return 100.0 * decades / (decades + 1.0)


def level(severity: float) -> str:
    """The severity in a word."""
    decades = severity / max(100.0 - severity, 1e-9)
    return LEVELS[int(np.searchsorted(_DECADES, decades, side="right"))]
