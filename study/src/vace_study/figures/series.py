"""One series with its anomalies, and its scores under several methods."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vace_ad.errors import ConfigError, InputError
from vace_study.catalog import find_series
from vace_study.figures.style import ANOMALY, COLOURS, TRAINING, canvas, chosen
from vace_study.results import Results
from vace_study.rows import Row
from vace_study.runner import scores_path
from vace_study.series import Series, load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHANNELS = 6  # drawn at most: those that change most often
_POINTS = 4000  # columns of a picture are fewer: longer lines are thinned to their extremes


def draw_series(
    results: Results, methods: Sequence[str], folder: str | Path, data: str | Path, name: str
) -> tuple[Any, str]:
    """Channels above, a line of scores for each method below; and a name for the file."""
    series = _find(data, name)
    kept = _kept(results, methods, folder, series)
    height = 1.8 + 0.9 * len(kept)
    with canvas(
        1 + len(kept), 1, (9.0, height), sharex=True, height_ratios=[1.9, *[1] * len(kept)]
    ) as (figure, axes):
        _draw_channels(axes[0, 0], series)
        first = len(series.labels) - len(kept[0][1])
        for k, (row, scores) in enumerate(kept):
            ax = axes[1 + k, 0]
            low, high = float(scores.min()), float(scores.max())
            x, y = _thinned((scores - low) / (high - low or 1.0))
            ax.plot(first + x, y, color=COLOURS[k % len(COLOURS)], linewidth=0.8)
            ax.set(ylim=(-0.05, 1.12), yticks=[])
            vus = f"VUS-PR {row.measures['VUS-PR']:.3f}"
            ax.set_title(f"{row.method}   {vus}", fontsize=8.5, fontweight="normal", pad=2)
            _mark(ax, series)
        axes[-1, 0].set(xlabel="row", xlim=(0, len(series.labels)))
        figure.suptitle(
            f"{series.name.short}, protocol {results.protocol}: anomalies red, training rows grey",
            x=0.01, ha="left", fontweight="bold", fontsize=10,
        )  # fmt: skip
        return figure, f"series-{series.name.family}-{series.name.member}"


def _find(data: str | Path, name: str) -> Series:
    """The series whose name is, or contains, `name`; also in the short form `MSL id_1`."""
    entries = find_series(data)
    exact = [e for e in entries if name in (e.name.stem, e.name.short)]
    found = exact or [e for e in entries if name in e.name.stem]
    if len(found) != 1:
        some = ", ".join(e.name.short for e in found[:5]) or "none"
        raise ConfigError(f"--series {name!r} fits {len(found)} series ({some}); name one")
    return load(found[0].path)


def _kept(
    results: Results, methods: Sequence[str], folder: str | Path, series: Series
) -> list[tuple[Row, NDArray[np.float64]]]:
    """The rows of the series with kept scores, the lowest seed of each method."""
    import numpy as np

    wanted = chosen(results, methods)
    rows: dict[str, Row] = {}
    for row in sorted(results.good, key=lambda row: row.seed):
        mine = row.series == series.name.stem and row.method in wanted
        if mine and scores_path(folder, row.key).is_file():
            rows.setdefault(row.method, row)
    if not rows:
        raise InputError(
            f"no scores of {series.name.short} are kept in {folder}; run with --keep-scores into a "
            "new folder"
        )
    return [
        (rows[name], np.load(scores_path(folder, rows[name].key)))
        for name in wanted
        if name in rows
    ]


def _draw_channels(ax: Any, series: Series) -> None:
    """The liveliest channels, each scaled to a band of its own."""
    import numpy as np

    changes = (np.diff(series.values, axis=0) != 0).sum(axis=0)
    liveliest = np.argsort(-changes, kind="stable")[:_CHANNELS]
    order = sorted(channel for channel in liveliest if changes[channel]) or [0]
    for k, channel in enumerate(order):
        values = series.values[:, channel]
        low, high = np.quantile(values, [0.001, 0.999])
        if low == high:  # still but for a few rows
            low, high = values.min(), values.max()
        scaled = np.clip((values - low) / (high - low or 1.0), -0.1, 1.1)
        x, y = _thinned(scaled)
        ax.plot(x, 0.8 * y - k, color="#444444", linewidth=0.6)
    ax.set(yticks=[0.4 - k for k in range(len(order))])
    ax.set_yticklabels([f"channel {channel}" for channel in order], fontsize=7)
    ax.tick_params(axis="y", length=0)
    _mark(ax, series)


def _mark(ax: Any, series: Series) -> None:
    """Anomalies and training rows behind the line."""
    import numpy as np

    ax.axvspan(0, series.name.train_rows, color=TRAINING, zorder=0, linewidth=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], series.labels, [0]])))
    least = len(series.labels) / 900  # a span thinner than a pixel would not be seen
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        ax.axvspan(start, max(end, start + least), color=ANOMALY, alpha=0.25, zorder=0, linewidth=0)


def _thinned(values: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Positions and values of a line's extremes, stretch by stretch."""
    import numpy as np

    n = len(values)
    if n <= _POINTS:
        return np.arange(n), values
    borders = np.linspace(0, n, _POINTS // 2 + 1).astype(np.intp)
    picks = [
        start + offset
        for start, end in pairwise(borders)
        for offset in sorted({int(values[start:end].argmin()), int(values[start:end].argmax())})
    ]
    index = np.array(picks, dtype=np.intp)
    return index, values[index]
