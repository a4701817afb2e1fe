"""Accuracy against cost: mean VUS-PR over seconds of a fit and a score, on the same series."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from vace_ad.errors import InputError
from vace_study.figures.style import COLOURS, GRID, canvas, chosen
from vace_study.results import Results
from vace_study.tables.main import costs

_BIGGEST = 700.0  # area of the largest mark, in square points
_LETTER, _LINE, _DOT = 4.3, 10.0, 3.0  # width and height of text, half a mark's middle, in points
_LEADER = {"arrowstyle": "-", "color": "#888888", "linewidth": 0.5}


def draw_cost(results: Results, methods: Sequence[str] = ()) -> Any:
    """A mark for each method on the series that all have; its area is the peak memory."""
    names = chosen(results, methods)
    mine = results.only(names).common()
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
        ax.margins(x=0.14, y=0.14)
        figure.draw_without_rendering()  # fixes where points lie
        spots = [(*ax.transData.transform((x, y)) * 72 / figure.dpi, name) for x, y, name in points]
        for (x, y, name), shift in zip(points, place_labels(spots), strict=True):
            far = abs(shift[1]) > _LINE
            ax.annotate(
                name, (x, y), xytext=shift, textcoords="offset points", fontsize=7.5,
                va="center", ha="center",
                arrowprops=_LEADER if far else None,
            )  # fmt: skip
        ax.set_ylabel("mean VUS-PR")
        ax.set_xlabel("seconds for fit and score (processor time if measured), mean over series")
        ax.grid(color=GRID, linewidth=0.6)
        n = len(mine.families)
        ax.set_title(
            f"Accuracy and cost on the {n} series that all have, protocol {results.protocol}; "
            f"area: peak memory, at most {most:,.0f} MB",
            fontsize=9,
        )
        return figure


class _Box(NamedTuple):
    """A rectangle in points of the drawing: left, bottom, right, top."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, x: float, y: float, half_width: float, half_height: float) -> _Box:
        """The rectangle with this middle."""
        return cls(x - half_width, y - half_height, x + half_width, y + half_height)

    def overlap(self, other: _Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)


def place_labels(points: Sequence[tuple[float, float, str]]) -> list[tuple[float, float]]:
    """Where the middle of each label goes, from its point, so that labels cover no other.

    Points and shifts are in points of the drawing. The nearest free place is taken; where none is
    free, that with the least overlap.
    """
    taken = [_Box.around(x, y, _DOT, _DOT) for x, y, _ in points]
    shifts: list[tuple[float, float]] = []
    for x, y, name in points:
        half = _LETTER * len(name) / 2
        around = [
            (side * (half + _DOT + 2) * (abs(turn) < 2), turn * _LINE * 0.75)
            for turn in (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5)
            for side in ((1, -1) if abs(turn) < 2 else (0,))
        ]
        around += [(side * (half + 30), turn * _LINE) for turn in range(-5, 6) for side in (1, -1)]
        boxes = [_Box.around(x + right, y + up, half, _LINE / 2) for right, up in around]
        covered = [sum(box.overlap(each) for each in taken) for box in boxes]
        best = covered.index(min(covered))
        shifts.append(around[best])
        taken.append(boxes[best])
    return shifts
