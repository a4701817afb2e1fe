"""What alarms are held against, as people are told it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vace_ad.alarms.budget import Budget, Threshold
    from vace_ad.detector import VACE


def at_start(detector: VACE, budget: Budget) -> tuple[float, Threshold]:
    """The threshold that the first row of a table will meet, and what the budget means."""
    threshold = detector.model_.threshold(budget, None, None)
    return threshold.value, threshold
