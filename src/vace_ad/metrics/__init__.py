"""Measures of detection quality: TSB-AD's nine, exact and quick."""

from vace_ad.metrics.vus import VUS, Surfaces, vus
from vace_ad.metrics.window import sliding_window

__all__ = ["VUS", "Surfaces", "sliding_window", "vus"]
