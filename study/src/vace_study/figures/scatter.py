"""Series by series: one method against one or two others, with wins counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vace_study.compare import Difference, paired
from vace_study.figures.style import COLOURS, MARKS, canvas, chosen, values_of
from vace_study.results import Results
from vace_study.tables.category import ordered_families


def draw_scatter(results: Results, methods: Sequence[str] = ()) -> Any:
    """The first method on the vertical axis, each other one on a panel of its own."""
    first, *others = chosen(results, methods, least=2)[:3]
    ours = values_of(results, first)
    shared = {s for other in others for s in values_of(results, other) if s in ours}
    families = [
        family
        for family in ordered_families(results)
        if any(results.families[series] == family for series in shared)
    ]
    with canvas(1, len(others), (4.2 * len(others) + 1.2, 4.3), sharey=True) as (figure, axes):
        for ax, other in zip(axes[0], others, strict=True):
            theirs = values_of(results, other)
            for k, family in enumerate(families):
                names = [s for s in ours if s in theirs and results.families[s] == family]
                ax.scatter(
                    [theirs[s] for s in names],
                    [ours[s] for s in names],
                    s=34,
                    marker=MARKS[k % len(MARKS)],
                    color=COLOURS[k % len(COLOURS)],
                    edgecolor="white",
                    linewidth=0.5,
                    label=family,
                    zorder=3,
                )
            ax.plot([0, 1], [0, 1], color="#888888", linewidth=0.8, linestyle="--", zorder=2)
            ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
            gap = paired(ours, theirs)
            ax.set_xlabel(f"VUS-PR of {other}\n{_interval(gap)}" if gap else f"VUS-PR of {other}")
            if gap:
                ax.set_title(f"{first} {gap.wins} : {gap.losses} {other}")
        axes[0, 0].set_ylabel(f"VUS-PR of {first}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", title="family")
        figure.suptitle(f"Each mark is a series, protocol {results.protocol}", x=0.02, ha="left")
        return figure


def _interval(gap: Difference) -> str:
    text = f"mean difference {gap.mean:+.3f}"
    if gap.low is None:
        return text
    return f"{text}, 95 % interval {gap.low:+.3f} to {gap.high:+.3f}"
