"""VUS-PR by anomaly density: how rare the anomalous rows of a series are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from vace_ad.errors import InputError
from vace_study.compare import paired
from vace_study.figures.style import COLOURS, GRID, canvas, chosen, values_of
from vace_study.results import Results

EDGES = (0.0, 0.01, 0.02, 0.05, 0.10, 1.0)  # shares of the evaluated rows


def draw_density(results: Results, methods: Sequence[str] = ()) -> Any:
    """A group of bars for each bin, with 95 % intervals of a bootstrap over its series."""
    names = chosen(results, methods)
    density = {
        row.series: row.anomalous_rows / row.evaluated_rows
        for row in results.good
        if row.anomalous_rows and row.evaluated_rows
    }
    bins = [
        (low, high, [s for s, share in density.items() if low < share <= high])
        for low, high in pairwise(EDGES)
    ]
    bins = [each for each in bins if each[2]]
    if not bins:
        raise InputError("no row tells how many of its rows are anomalous; run the methods again")
    width = 0.8 / len(names)
    with canvas(1, 1, (1.6 + 1.35 * len(bins), 3.6)) as (figure, axes):
        ax = axes[0, 0]
        for k, name in enumerate(names):
            values = values_of(results, name)
            for i, (_, _, members) in enumerate(bins):
                mine = {s: values[s] for s in members if s in values}
                if mine:
                    at = i + (k - (len(names) - 1) / 2) * width
                    ax.bar(at, fmean(mine.values()), width * 0.92, color=COLOURS[k % len(COLOURS)])
                    _whisker(ax, at, mine)
            ax.bar(0, 0, color=COLOURS[k % len(COLOURS)], label=name)
        ax.set_xticks(range(len(bins)), [_label(low, high, m) for low, high, m in bins])
        ax.set(ylim=(0, 1), ylabel="mean VUS-PR", xlabel="anomalous share of the evaluated rows")
        ax.grid(axis="y", color=GRID, linewidth=0.6)
        ax.set_title(f"VUS-PR by anomaly density, protocol {results.protocol}")
        figure.legend(loc="outside lower center", ncols=min(4, len(names)))
        return figure


def _whisker(ax: Any, at: float, values: dict[str, float]) -> None:
    spread = paired(values, dict.fromkeys(values, 0.0))
    if spread and spread.low is not None:
        ax.plot([at, at], [spread.low, spread.high], color="#333333", linewidth=1)


def _label(low: float, high: float, members: list[str]) -> str:
    if low == 0:
        span = f"up to {high:.0%}"
    elif high == 1:
        span = f"over {low:.0%}"
    else:
        span = f"{low:.0%} to {high:.0%}"
    return f"{span}\n(n = {len(members)})"
