"""The paper's figures from a run, as PNG and SVG (extra `plot`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vace_study.figures.categories import draw_categories
from vace_study.figures.cost import draw_cost
from vace_study.figures.critical_difference import draw_critical_difference
from vace_study.figures.density import draw_density
from vace_study.figures.geometry import draw_geometry
from vace_study.figures.scatter import draw_scatter
from vace_study.results import Results

FIGURES: dict[str, Callable[[Results, Sequence[str]], Any]] = {
    "scatter": draw_scatter,
    "density": draw_density,
    "geometry": draw_geometry,
    "categories": draw_categories,
    "critical-difference": draw_critical_difference,
    "cost": draw_cost,
}

__all__ = ["FIGURES"]
