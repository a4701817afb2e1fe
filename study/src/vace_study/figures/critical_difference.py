"""The critical-difference diagram: mean ranks, and bars where no difference is significant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from vace_study.figures.style import COLOURS, canvas, chosen, values_of
from vace_study.ranks import Ranking, rank
from vace_study.results import Results

_STEP = 0.55  # between two labels, in units of the drawing
_BAR = 0.22  # between two bars


def draw_critical_difference(results: Results, methods: Sequence[str] = ()) -> Any:
    """Methods by mean rank of VUS-PR over the series that all have."""
    names = chosen(results, methods, least=2)
    return draw_ranking(rank({name: values_of(results, name) for name in names}), results.protocol)


def draw_ranking(ranking: Ranking, protocol: str) -> Any:
    """The better half to the left, the other to the right, bars below the line."""
    n = len(ranking.methods)
    low, high = math.floor(min(ranking.ranks)), max(math.ceil(max(ranking.ranks)), 2)
    groups = ranking.groups
    rows = math.ceil(n / 2)
    bottom = -(0.35 + _BAR * len(groups) + _STEP * rows)
    margin = 0.16 * (high - low)  # what labels stand beyond the line
    with canvas(1, 1, (8.0, 1.3 + 0.42 * -bottom)) as (figure, axes):
        ax = axes[0, 0]
        ax.set(xlim=(low - 3.2 * margin, high + 3.2 * margin), ylim=(bottom, 0.75))
        ax.axis("off")
        ax.plot([low, high], [0, 0], color="#333333", linewidth=1)
        for tick in range(low, high + 1):
            ax.plot([tick, tick], [0, 0.12], color="#333333", linewidth=1)
            ax.text(tick, 0.2, str(tick), ha="center", va="bottom")
        _bars(ax, ranking, groups)
        first_label = -(0.35 + _BAR * len(groups))
        for i, (name, at) in enumerate(zip(ranking.methods, ranking.ranks, strict=True)):
            left = i < rows
            place = i if left else n - 1 - i
            y = first_label - _STEP * place
            end = low - margin if left else high + margin
            ax.plot([at, at, end], [0, y, y], color="#666666", linewidth=0.8)
            text = f"{name}  {at:.2f}" if left else f"{at:.2f}  {name}"
            side = "right" if left else "left"
            gap = -0.1 * margin if left else 0.1 * margin
            ax.text(end + gap, y, text, ha=side, va="center")
        ax.set_title(
            f"Mean rank of VUS-PR over {ranking.n_series} series, protocol {protocol}; "
            f"Friedman p = {ranking.friedman_p:.2g}\n"
            f"bars: no significant difference (Wilcoxon with Holm, {ranking.level:g})"
        )
        return figure


def _bars(ax: Any, ranking: Ranking, groups: Sequence[tuple[str, ...]]) -> None:
    where = dict(zip(ranking.methods, ranking.ranks, strict=True))
    for k, group in enumerate(groups):
        y = -0.22 - _BAR * k
        ends = [where[group[0]] - 0.03, where[group[-1]] + 0.03]
        ax.plot(ends, [y, y], color=COLOURS[0], linewidth=3.5, solid_capstyle="round")
