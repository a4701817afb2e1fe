"""A detection at a glance: a plot for matplotlib, a few lines of text, a card for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import CONDITIONS, NO_DATA
from vace_ad.errors import MissingExtraError
from vace_ad.frames.write import zone_of
from vace_ad.frames.zones import time_words
from vace_ad.plain import plain_text, plural
from vace_ad.report.words import shortened

if TYPE_CHECKING:
    from vace_ad.alarms import Event
    from vace_ad.detection import Detection

LISTED = 5  # events in the text and the card
POINTS = 2000  # of the plotted score; more cannot be told apart
WIDTH, HEIGHT = 640, 96  # pixels of the small picture
INK, RED, GREY = "#3b4650", "#c4490c", "#8a929b"

Array = NDArray[np.float64]


def plot(found: Detection, ax: Any = None) -> Any:
    """Draw evidence, its limit and events on matplotlib axes, new ones where none came."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise MissingExtraError("a plot", "matplotlib", "plot") from error
        _, ax = plt.subplots(figsize=(10, 2.8), layout="constrained")
    rows, low, high = envelope(found.evidence, POINTS)
    time = _time(found)
    at = rows if time is None else time[rows]
    if np.array_equal(low, high, equal_nan=True):
        ax.plot(at, high, color=INK, linewidth=1, label="evidence")
    else:
        ax.fill_between(at, low, high, color=INK, linewidth=0.8, label="evidence")
    ax.plot(*_threshold_line(found, rows, at), color=RED, linestyle="--", label="limit")
    for event in found.events:
        start, end = _edges(event, len(found.scores))
        color = RED if event.kind == "anomaly" else GREY
        span = (start, end) if time is None else (time[start], time[end])
        ax.axvspan(*span, color=color, alpha=0.2, linewidth=1)
    ax.set_ylabel("evidence over its limit")
    ax.set_xlabel("row" if time is None else "time")
    ax.set_title(headline(found), loc="left", fontsize="medium")
    ax.margins(x=0)
    return ax


def headline(found: Detection) -> str:
    """Return what was found in one line."""
    anomalies = len(found.anomalies)
    silent, outside = found.count(NO_DATA), found.count(CONDITIONS)
    words = "1 anomaly" if anomalies == 1 else f"{anomalies:,} anomalies"
    if silent:
        words += f" and {silent:,} without data"
    if outside:
        words += f" and {outside:,} under conditions outside training"
    return f"{words} in {plural(len(found.scores), 'row')} ({found.threshold.words})"


def text(found: Detection) -> str:
    """Return what was found in a few lines: the headline, then the most severe events."""
    lines, zone = [f"Detection: {headline(found)}"], zone_of(found.data)
    for event in _strongest(found):
        cells = [_when(event, zone), _rows(event), _severity(event), _suspects(event)]
        lines.append("  " + "  ".join(cell for cell in cells if cell))
    hidden = len(found.events) - LISTED
    return "\n".join([*lines, f"  and {hidden:,} more"] if hidden > 0 else lines)


def html(found: Detection) -> str:
    """Return a card for notebooks: the headline, a small picture, the most severe events."""
    zone = zone_of(found.data)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:left;padding-right:1em;white-space:{wrap}">{escape(cell)}</td>'
            for cell, wrap in (
                (_when(event, zone), "nowrap"),
                (_rows(event), "nowrap"),
                (_severity(event), "nowrap"),
                (_suspects(event), "normal"),
            )
        )
        + "</tr>"
        for event in _strongest(found)
    )
    hidden = len(found.events) - LISTED
    more = f"<p>and {hidden:,} more</p>" if hidden > 0 else ""
    table = f"<table>{rows}</table>" if rows else ""
    return f"<div><p><b>{escape(headline(found))}</b></p>{picture(found)}{table}{more}</div>"


def picture(found: Detection) -> str:
    """Return the evidence with its limit and events as an SVG that needs nothing else."""
    n = len(found.scores)
    rows, low, high = envelope(found.evidence, WIDTH // 2)
    line = found.limits[rows]
    known = np.concatenate([low, high, line])
    known = known[np.isfinite(known)]
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)

    def x(row: float) -> float:
        return WIDTH * row / max(n, 1)

    def y(values: Array) -> Array:
        share: Array = (most - values) / ((most - least) or 1.0)
        return 4 + (HEIGHT - 8) * share

    shades = []
    for event in found.events:
        start, end = x(event.start), x(event.end)
        color = RED if event.kind == "anomaly" else GREY
        shades.append(
            f'<rect x="{start:.1f}" y="0" width="{max(end - start, 2):.1f}" height="{HEIGHT}" '
            f'fill="{color}" fill-opacity="0.25"/>'
        )
    tops, bottoms = y(high), y(low)
    bars = "".join(
        f"M{x(row):.1f} {top:.1f}V{max(bottom, top + 1):.1f}"
        for row, top, bottom in zip(rows.tolist(), tops.tolist(), bottoms.tolist(), strict=True)
        if np.isfinite(top)
    )
    level = " ".join(
        f"{x(row):.1f},{place:.1f}"
        for row, place in zip(rows.tolist(), y(line).tolist(), strict=True)
        if np.isfinite(place)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="evidence, limit and events" style="max-width:100%">'
        f'{"".join(shades)}<path d="{bars}" stroke="currentColor" stroke-width="2" fill="none"/>'
        f'<polyline points="{level}" stroke="{RED}" stroke-dasharray="5 4" fill="none"/></svg>'
    )


def envelope(scores: NDArray[np.floating], most: int) -> tuple[NDArray[np.intp], Array, Array]:
    """Return at most so many rows, and the lowest and highest score from each to the next."""
    wide = np.where(np.isfinite(scores), scores, np.nan).astype(np.float64)
    size = max(1, -(-len(wide) // most))
    padded = np.full(-(-len(wide) // size) * size, np.nan)
    padded[: len(wide)] = wide
    bins = padded.reshape(-1, size)  # (k, size)
    low, high = np.fmin.reduce(bins, axis=1), np.fmax.reduce(bins, axis=1)
    return np.arange(len(bins)) * size, low, high


def _threshold_line(found: Detection, rows: NDArray[np.intp], at: Any) -> tuple[Any, Any]:
    return at, found.limits[rows]


def _time(found: Detection) -> NDArray[np.datetime64] | None:
    from vace_ad.frames.table import as_table

    return None if found.data is None else as_table(found.data).time


def _edges(event: Event, n_rows: int) -> tuple[int, int]:
    """The first and last row to shade; for a jump in time the rows on either side."""
    if event.start == event.end:
        return max(0, event.start - 1), min(event.start, n_rows - 1)
    return event.start, event.end - 1


def _strongest(found: Detection) -> list[Event]:
    """The most severe events, in order of row."""
    ranked = sorted(found.events, key=lambda event: -np.nan_to_num(event.severity, nan=-1.0))
    return sorted(ranked[:LISTED], key=lambda event: event.start)


def _when(event: Event, zone: str | None) -> str:
    return (
        f"row {event.start:,}" if event.start_time is None else time_words(event.start_time, zone)
    )


def _rows(event: Event) -> str:
    return plural(event.rows, "row") if event.rows else "a gap in time"


def _severity(event: Event) -> str:
    return f"severity {event.severity:.0f}" if np.isfinite(event.severity) else event.kind


def _suspects(event: Event) -> str:
    return ", ".join(
        f"{shortened(plain_text(name), 30)} {share:.0%}"
        for name, share in event.shares[:3]
        if share >= 0.005
    )
