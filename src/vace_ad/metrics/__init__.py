"""Measures of detection quality: TSB-AD's nine, PATE and DQE, exact and quick; operation."""

from vace_ad.alarms.forewarning import Forewarning, forewarning
from vace_ad.metrics.dqe import dqe
from vace_ad.metrics.evaluate import evaluate
from vace_ad.metrics.operating import Operating, Operational, blame_hits, operating, operational
from vace_ad.metrics.pate import pate
from vace_ad.metrics.vus import VUS, Surfaces, vus
from vace_ad.metrics.window import sliding_window

__all__ = [
    "VUS",
    "Forewarning",
    "Operating",
    "Operational",
    "Surfaces",
    "blame_hits",
    "dqe",
    "evaluate",
    "forewarning",
    "operating",
    "operational",
    "pate",
    "sliding_window",
    "vus",
]
