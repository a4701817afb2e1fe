"""Kinds of evidence, one module each. The order is that of the lines in an answer."""

from vace_ad.signals.level_scale import LevelScale
from vace_ad.signals.protocol import Evidence, Fitted, Signal, Training
from vace_ad.signals.relation import Relation
from vace_ad.signals.shape import Shape
from vace_ad.signals.spike import Spike

KINDS: tuple[type[Signal], ...] = (Shape, LevelScale, Spike, Relation)

__all__ = ["KINDS", "Evidence", "Fitted", "Signal", "Training"]
