"""The plot of a plant: its sensors, the score, the faults and the events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.demo.plant import Plant
from vace_ad.errors import MissingExtraError

INK, QUIET, FAULT, FOUND = "#22303c", "#6b7c8c", "#e8a33d", "#c2410c"


def draw(
    plant: Plant,
    scores: NDArray[np.float64],  # of the rows after training
    threshold: NDArray[np.float64],  # of the same rows
    events: Sequence[tuple[int, int]],  # rows [start, end) of the plant
    path: Path,
) -> None:
    """Write a PNG: sensors above, score below, one time axis."""
    try:
        import matplotlib.dates as dates
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("the picture", "matplotlib", "plot") from error
    n = len(plant.names)
    figure = Figure(figsize=(12, 8.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    sensors, score = figure.subplots(2, 1, sharex=True, height_ratios=[n, 3.2])
    spread = plant.values[: plant.train_rows].std(axis=0)
    scaled = (plant.values - plant.values[: plant.train_rows].mean(axis=0)) / spread / 9
    for i in range(n):
        sensors.plot(plant.time, n - 1 - i + np.clip(scaled[:, i], -0.6, 0.6), lw=0.6, color=INK)
    sensors.set_yticks(range(n), [name.replace("_", " ") for name in reversed(plant.names)])
    sensors.set_ylim(-0.7, n - 0.3)
    rows = np.arange(plant.train_rows, len(plant.values))
    score.plot(plant.time[rows], scores, lw=1, color=INK)
    score.plot(plant.time[rows], threshold, lw=0.9, ls="--", color=FOUND)
    score.set_ylabel("evidence")
    top = max(float(np.nanmax(scores)), float(np.nanmax(threshold))) * 1.12
    score.set_ylim(0, top)
    for fault in plant.faults:
        span = plant.time[fault.start], plant.time[min(fault.end + 6, len(plant.time) - 1)]
        row = n - 1 - plant.names.index(fault.sensor)
        sensors.axvspan(*span, color=FAULT, alpha=0.14, lw=0)
        sensors.fill_between(span, row - 0.5, row + 0.5, color=FAULT, alpha=0.65, lw=0, zorder=0)
        sensors.text(
            plant.time[(fault.start + fault.end) // 2], n - 0.32, fault.kind, ha="center",
            va="bottom", fontsize=8, color=INK,
        )  # fmt: skip
        score.axvspan(*span, color=FAULT, alpha=0.14, lw=0)
    for start, end in events:
        at = plant.time[start], plant.time[end - 1]
        score.fill_between(at, 0, top, color=FOUND, alpha=0.22, lw=0)
    for axes in (sensors, score):
        axes.axvspan(plant.time[0], plant.time[plant.train_rows], color=QUIET, alpha=0.09, lw=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0, labelsize=8, colors=INK)
    sensors.tick_params(axis="x", length=0)
    score.text(plant.time[plant.train_rows // 2], top * 0.45, "training", ha="center", color=QUIET)
    formatter: Any = dates.DateFormatter  # matplotlib has no types for it
    score.xaxis.set_major_formatter(formatter("%d %b"))
    score.margins(x=0)
    figure.suptitle(
        "Known faults in amber, what was found in red", fontsize=10, color=QUIET, x=0.99, ha="right"
    )
    figure.savefig(path)
