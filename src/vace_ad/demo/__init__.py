"""A simulated plant with known faults: what `vace demo` shows and many tests use."""

from vace_ad.demo.plant import Fault, Plant, simulate

__all__ = ["Fault", "Plant", "simulate"]
