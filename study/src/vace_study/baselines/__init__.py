"""The study's other systems and VACE's own variants, each a method that can be run by name."""

from vace_study.baselines.contract import Detector, Method
from vace_study.baselines.registry import expand, names, resolve

__all__ = ["Detector", "Method", "expand", "names", "resolve"]
