"""Accuracy against cost: mean VUS-PR over seconds of a fit and a score, on the same series."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from vace_ad.bench.figures.style import COLOURS, GRID, canvas, chosen
from vace_ad.bench.results import Results
from vace_ad.bench.tables.main import costs
from vace_ad.errors import InputError

_BIGGEST = 700.0  # area of the largest mark, in square points


def draw_cost(results: Results, methods: Sequence[str] = ()) -> Any:
    """A mark for each method on the series that all have; its area is the peak memory."""
    names = chosen(results, methods)
    mine = Results(results.protocol, [row for row in results.rows if row.method in names]).common()
    found = {name: costs(mine, name) for name in mine.methods}
    known = {name: each for name, each in found.items() if each[0] is not None}
    if not known:
        raise InputError("no method has costs on series that all methods have; choose --methods")
    most = max(memory or 0.0 for _, memory in known.values()) or 1.0
    with canvas(1, 1, (7.6, 4.8)) as (figure, axes):
        ax = axes[0, 0]
        points = []
        for k, (name, (seconds, memory)) in enumerate(known.items()):
            accuracy = fmean(mine.values(name, "VUS-PR").values())
            x = max(seconds or 0.0, 1e-3)
            area = _BIGGEST * (memory or 0.0) / most
            colour = COLOURS[k % len(COLOURS)]
            ax.scatter(x, accuracy, s=area, color=colour, alpha=0.45, linewidth=0, zorder=2)
            ax.scatter(x, accuracy, s=9, color=colour, zorder=3)
            points.append((x, accuracy, name))
        ax.set_xscale("log")
        ax.margins(x=0.12, y=0.14)
        for x, y, name, shift in _labels(points):
            ax.annotate(
                name, (x, y), xytext=(7, shift), textcoords="offset points", fontsize=7.5,
                va="center",
            )  # fmt: skip
        ax.set_ylabel("mean VUS-PR")
        ax.set_xlabel(
            "seconds for a fit and a score (processor time where taken), mean over series"
        )
        ax.grid(color=GRID, linewidth=0.6)
        n = len(mine.families)
        ax.set_title(
            f"Accuracy against cost on {n} series that all have, protocol {results.protocol}; "
            f"area: peak memory, at most {most:,.0f} MB",
            fontsize=9,
        )
        return figure


def _labels(
    points: Sequence[tuple[float, float, str]],
) -> list[tuple[float, float, str, float]]:
    """Each point with a shift of its label, so that labels of near points do not overlap."""
    span = max(y for _, y, _ in points) - min(y for _, y, _ in points) or 1.0
    placed: list[tuple[float, float, str, float]] = []
    free = 0.038 * span  # height of a line of text
    last = -1e9
    for x, y, name in sorted(points, key=lambda point: point[1]):
        at = max(y, last + free)
        last = at
        placed.append((x, y, name, (at - y) / span * 250))  # about points of the drawing
    return placed
