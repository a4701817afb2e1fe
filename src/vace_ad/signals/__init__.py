"""Kinds of evidence, one module each. The order is that of the lines in an answer."""

from vace_ad.signals.ensemble import KINDS, kinds
from vace_ad.signals.protocol import Evidence, Fitted, Signal, Training

__all__ = ["KINDS", "Evidence", "Fitted", "Signal", "Training", "kinds"]
