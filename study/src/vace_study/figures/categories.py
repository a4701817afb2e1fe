"""VUS-PR by family on a radar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isnan, nan, pi
from typing import Any

from vace_ad.errors import InputError
from vace_study.figures.style import COLOURS, GRID, canvas, chosen, values_of
from vace_study.results import Results
from vace_study.tables.category import family_means, ordered_families


def draw_categories(results: Results, methods: Sequence[str] = ()) -> Any:
    """One spoke a family, one outline a method."""
    names = chosen(results, methods)
    families = ordered_families(results)
    if len(families) < 3:
        raise InputError(f"a radar needs three families or more, the run has {len(families)}")
    counts = Counter(results.families.values())
    angles = [2 * pi * i / len(families) for i in range(len(families))]
    polar = {"projection": "polar"}
    with canvas(1, 1, (5.6, 5.8), subplot_kw=polar) as (figure, axes):
        ax = axes[0, 0]
        ax.set_theta_offset(pi / 2)
        ax.set_theta_direction(-1)
        for k, name in enumerate(names):
            values = values_of(results, name)
            means = family_means(values, results.families, families)[:-1]
            # A family that is missing leaves a gap: a line across it would tell a value.
            known = [nan if mean is None else float(mean) for mean in means]
            colour = COLOURS[k % len(COLOURS)]
            part = "" if len(values) == counts.total() else f" ({len(values)} series)"
            ax.plot(
                [*angles, angles[0]], [*known, known[0]], color=colour, linewidth=1.8, marker="o",
                markersize=3.5, label=name + part,
            )  # fmt: skip
            if not any(map(isnan, known)):
                ax.fill(angles, known, color=colour, alpha=0.08)
        ax.set_xticks(angles, [f"{name}\n(n = {counts[name]})" for name in families])
        ax.tick_params(axis="x", pad=12)
        ax.set_ylim(0, 1)
        ax.set_yticks([0.2, 0.4, 0.6, 0.8], ["0.2", "0.4", "0.6", "0.8"], color="#777777")
        ax.set_rlabel_position(180 / len(families))
        ax.grid(color=GRID, linewidth=0.6)
        ax.spines["polar"].set_color(GRID)
        ax.set_title(f"VUS-PR by category, protocol {results.protocol}", pad=18)
        figure.legend(loc="outside lower center", ncols=min(3, len(names)))
        return figure
