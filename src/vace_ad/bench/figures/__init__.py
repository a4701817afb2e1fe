"""The paper's figures from a run, as PNG and SVG (extra `plot`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vace_ad.bench.figures.categories import draw_categories
from vace_ad.bench.figures.cost import draw_cost
from vace_ad.bench.figures.critical_difference import draw_critical_difference
from vace_ad.bench.figures.density import draw_density
from vace_ad.bench.figures.geometry import draw_geometry
from vace_ad.bench.figures.scatter import draw_scatter
from vace_ad.bench.results import Results

FIGURES: dict[str, Callable[[Results, Sequence[str]], Any]] = {
    "scatter": draw_scatter,
    "density": draw_density,
    "geometry": draw_geometry,
    "categories": draw_categories,
    "critical-difference": draw_critical_difference,
    "cost": draw_cost,
}

__all__ = ["FIGURES"]
