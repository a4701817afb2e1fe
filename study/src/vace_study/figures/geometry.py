"""The regimes of the embedding: effective rank against the share of the first direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vace_ad.errors import InputError
from vace_study.figures.style import COLOURS, GRID, MARKS, canvas, chosen
from vace_study.results import Results


def draw_geometry(results: Results, methods: Sequence[str] = ()) -> Any:
    """A mark for each series and method that has diagnostics; crosses are means."""
    names = [n for n in chosen(results, methods) if results.values(n, "effective_rank_pr")]
    if not names:
        raise InputError("no row of the run has geometry; run a VACE method first")
    with canvas(1, 1, (6.4, 4.4)) as (figure, axes):
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        ax = axes[0, 0]
        for k, name in enumerate(names):
            rank = results.values(name, "effective_rank_pr")
            top = results.values(name, "top1_variance")
            shared = [s for s in rank if s in top]
            colour = COLOURS[k % len(COLOURS)]
            x, y = [rank[s] for s in shared], [top[s] for s in shared]
            ax.scatter(
                x, y, s=26, color=colour, alpha=0.75, marker=MARKS[k % len(MARKS)], label=name
            )
            ax.scatter(
                sum(x) / len(x), sum(y) / len(y), s=150, marker="X", color=colour,
                edgecolor="white", linewidth=1.2, zorder=4,
            )  # fmt: skip
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_ylim(0, 1.02)
        ax.set_xlabel("effective rank (participation ratio) / embedding size, log scale")
        ax.set_ylabel("share of variance in the first direction")
        ax.grid(color=GRID, linewidth=0.6)
        ax.annotate("collapsed", (0.01, 0.99), xycoords="axes fraction", color="#666666", va="top")
        ax.annotate(
            "isotropic", (0.99, 0.02), xycoords="axes fraction", color="#666666", ha="right"
        )
        ax.set_title("Geometry of the training embeddings; crosses are means over series")
        figure.legend(loc="outside lower center", ncols=min(3, len(names)))
        return figure
