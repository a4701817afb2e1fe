"""The threshold as people are told it: the one that rows are held against, not a step on the way.

It goes on learning, so there are two numbers: that of the first row and that of the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vace_ad.alarms.alarming import Alarming
from vace_ad.report.data import first_and_last
from vace_ad.report.words import threshold_words

if TYPE_CHECKING:
    from vace_ad.alarms.budget import Budget, Threshold
    from vace_ad.detection import Detection
    from vace_ad.detector import VACE


def ends(found: Detection) -> tuple[float, float]:
    """The threshold of the first row and of the last; the budget's own where no row has one."""
    known = first_and_last(found.limits)
    return (found.threshold.value, found.threshold.value) if known is None else known


def told(found: Detection) -> str:
    """The threshold in words, e.g. "threshold 1.95 at the start, 3.88 at the end"."""
    return threshold_words(*ends(found))


def at_start(detector: VACE, budget: Budget) -> tuple[float, Threshold]:
    """The threshold that the first row of a table will meet, and what the budget means."""
    alarming = Alarming.of(detector.model_, budget, None, None)
    first = alarming.watcher().add(np.zeros(1)).limit[0]
    return float(first), alarming.threshold
