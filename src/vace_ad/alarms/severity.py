"""How strong an alarm is, in one unit: how often normal data would show one as strong.

At the limit that is the budget itself, and each nat beyond it makes it e times rarer.
"""

from __future__ import annotations

import numpy as np

LEVELS = ("low", "medium", "high", "critical")
_DECADES = (1.0, 2.0, 4.0)  # times ten rarer than the budget at which the next level begins
_BEYOND = 1_000  # times the training rows: what is rarer is told as this rare


def chance(margin: float, rate: float, n_rows: int) -> float:
    """Alarms a row, in normal data, that are at least `margin` nats beyond the budget's limit.

    `n_rows` normal rows cannot show that something is more than a thousand times rarer than once
    among them.
    """
    return float(max(rate * np.exp(-margin), 1 / (_BEYOND * n_rows)))


def severity(chance: float, rate: float) -> float:
    """From 0 at the budget towards 100: 50 for ten times rarer, 75 for a thousand times."""
    decades = max(float(np.log10(rate) - np.log10(chance)), 0.0)
    return 100.0 * decades / (decades + 1.0)


def level(severity: float) -> str:
    """The severity in a word."""
    decades = severity / max(100.0 - severity, 1e-9)
    return LEVELS[int(np.searchsorted(_DECADES, decades, side="right"))]
