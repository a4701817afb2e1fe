"""Measures of detection quality: TSB-AD's nine, exact and quick, and those of operation."""

from vace_ad.metrics.evaluate import evaluate
from vace_ad.metrics.operating import Operating, blame_hits, operating
from vace_ad.metrics.operational import Operational, operational
from vace_ad.metrics.vus import VUS, Surfaces, vus
from vace_ad.metrics.window import sliding_window

__all__ = [
    "VUS",
    "Operating",
    "Operational",
    "Surfaces",
    "blame_hits",
    "evaluate",
    "operating",
    "operational",
    "sliding_window",
    "vus",
]
