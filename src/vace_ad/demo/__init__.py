"""A simulated plant with known faults, for `vace demo` and tests."""

from vace_ad.demo.plant import Fault, Plant, simulate

__all__ = ["Fault", "Plant", "simulate"]
