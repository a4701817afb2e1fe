"""From rows to alarms: evidence, limits from a budget, events and suspected channels."""

from vace_ad.alarms.budget import Budget, Threshold, score_threshold
from vace_ad.alarms.calibration import Calibration, Tail
from vace_ad.alarms.events import Event
from vace_ad.frames.segments import Rules

__all__ = [
    "Budget",
    "Calibration",
    "Event",
    "Rules",
    "Tail",
    "Threshold",
    "score_threshold",
]
