"""Kinds of evidence, one module each. The order is that of the lines in an answer."""

from vace_ad.signals.distance import Distance
from vace_ad.signals.forecast import Forecast
from vace_ad.signals.level_scale import LevelScale
from vace_ad.signals.protocol import Evidence, Fitted, Signal, Training
from vace_ad.signals.relation import Relation
from vace_ad.signals.shape import Shape
from vace_ad.signals.spike import Spike
from vace_ad.signals.surge import Surge

KINDS: tuple[type[Signal], ...] = (
    Shape,
    LevelScale,
    Spike,
    Relation,
    Forecast,
    Distance,
    Surge,
)

__all__ = ["KINDS", "Evidence", "Fitted", "Signal", "Training"]
