"""A page an event, for paper and for readers without scripts.

A suspect of an event as a small picture: its values, what was expected, the evidence below.

For paper and for notebooks, where no script runs; the page itself draws from all rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import Event
from vace_ad.frames.segments import run_edges
from vace_ad.report.data import Curve, ReportData
from vace_ad.report.document import surroundings
from vace_ad.report.formatting import length, readings, stamp, what_it_means
from vace_ad.report.time_axis import TimeAxis

MOST = 24  # events, the most severe ones
SUSPECTS = 4  # of an event


def pages(data: ReportData, clock: TimeAxis) -> str:
    """Return an article for each of the most severe events, in order of time."""
    numbered = [(i, event) for i, event in enumerate(data.events, 1) if event.start < event.end]
    worst = sorted(numbered, key=lambda one: -np.nan_to_num(one[1].severity, nan=-1.0))[:MOST]
    found = [_page(i, event, data, clock) for i, event in sorted(worst, key=lambda one: one[0])]
    left = len(numbered) - len(worst)
    if left:
        found.append(f"<p>{left:,} less severe events are in the table alone.</p>")
    return "\n".join(found)


def _page(number: int, event: Event, data: ReportData, clock: TimeAxis) -> str:
    first, end = surroundings(event, data.n_rows)
    place = {name: i for i, name in enumerate(data.channels)}
    said = readings(event, data)
    drawn = []
    for name, share in list(event.shares)[:SUSPECTS]:
        if name not in data.expected:
            continue
        curve = type(data.expected[name])(*(line[first:end] for line in data.expected[name]))
        values = data.values[first:end, place[name]]
        label = escape(data.label(name))
        picture = suspect_svg(values, curve, first, (event.start, event.end), label)
        words = f": {escape(said[name])}" if name in said else ""
        drawn.append(
            f"<figure><figcaption><b>{label}</b> {share:.0%}{words}</figcaption>{picture}</figure>"
        )
    ends = f"{stamp(data, event.start, clock)} to {stamp(data, event.end - 1, clock)}"
    axis = f"{stamp(data, first, clock)}</span><span>{stamp(data, end - 1, clock)}"
    return (
        f"<article><h2>Event {number} of {len(data.events)}</h2>"
        f"<p><b>{escape(ends)}</b> ({escape(length(event, data, clock))}). "
        f"{escape(what_it_means(event, data))}</p>{''.join(drawn)}"
        + (f'<p class="ends"><span>{axis}</span></p>' if drawn else "")
        + "</article>"
    )


Array = NDArray[np.float64]

WIDTH, HEIGHT, STRIP = 640, 110, 34  # of the picture, and of the evidence in it
POINTS = 160  # columns at most
EVENT, EXPECTED = "#d55e00", "#00805d"


def suspect_svg(
    values: NDArray[np.floating], curve: Curve, first: int, span: tuple[int, int], name: str
) -> str:
    """Draw rows of a channel from row `first` on, with what was expected; `span` is the event.

    `curve` has the same rows as `values` (n,).
    """
    low, high = _bins(values)
    lower, _ = _bins(curve.lower)
    _, upper = _bins(curve.upper)
    _, nats = _bins(curve.nats)
    n, scale = len(low), WIDTH / max(len(values), 1)
    x = (np.arange(n) + 0.5) * WIDTH / n
    known = np.concatenate([low, high, lower, upper])
    known = known[np.isfinite(known)]
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    top = HEIGHT - STRIP - 6

    def y(line: Array) -> Array:
        return np.asarray(3 + (top - 6) * (most - line) / ((most - least) or 1.0))

    height = max(float(np.nanmax(nats, initial=0.0)), 1.0)
    start, end = ((row - first) * scale for row in span)
    outside = (high > upper) | (low < lower)
    outside &= (x > start - WIDTH / n) & (x < end + WIDTH / n)
    left = np.where(outside, 0.0, np.nan)
    gone = _bars(x, y(high) + left, y(low)) + _line(x, y((low + high) / 2) + left)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">'
        f'<rect x="{start:.1f}" y="0" width="{max(end - start, 2):.1f}" height="{HEIGHT}" '
        f'fill="{EVENT}" fill-opacity="0.13"/>'
        f'<path d="{_area(x, y(lower), y(upper))}" fill="{EXPECTED}" fill-opacity="0.2"/>'
        f'<path d="{_line(x, y((lower + upper) / 2))}" stroke="{EXPECTED}" fill="none"/>'
        f'<path d="{_bars(x, y(high), y(low))}{_line(x, y((low + high) / 2))}" '
        'stroke="currentColor" stroke-width="1.3" fill="none"/>'
        f'<path d="{gone}" stroke="{EVENT}" stroke-width="2" fill="none"/>'
        f'<path d="{_bars(x, HEIGHT - STRIP * nats / height, np.full(n, float(HEIGHT)))}" '
        f'stroke="{EVENT}" stroke-width="{max(WIDTH / n - 0.5, 1):.1f}" fill="none"/>'
        f'<text x="2" y="{HEIGHT - STRIP + 8}" font-size="10" fill="currentColor">'
        f"evidence, up to {height:.0f} nats</text></svg>"
    )


def _bins(line: NDArray[np.floating]) -> tuple[Array, Array]:
    """The lowest and the highest value of each of a few columns, NaN where there is none."""
    size = max(1, -(-len(line) // POINTS))
    padded = np.full(-(-len(line) // size) * size, np.nan)
    padded[: len(line)] = np.where(np.isfinite(line), line, np.nan)
    columns = padded.reshape(-1, size)
    return np.fmin.reduce(columns, axis=1), np.fmax.reduce(columns, axis=1)


def _runs(*lines: Array) -> Iterable[NDArray[np.intp]]:
    """Places of columns that follow each other and are known in all lines."""
    known = np.asarray(np.isfinite(lines).all(axis=0))
    return (np.arange(a, b) for a, b in run_edges(known).tolist())


def _line(x: Array, y: Array) -> str:
    return "".join(
        "M" + "L".join(f"{x[i]:.1f} {y[i]:.1f}" for i in run.tolist()) for run in _runs(y)
    )


def _area(x: Array, low: Array, high: Array) -> str:
    found = []
    for run in _runs(low, high):
        there = [f"{x[i]:.1f} {high[i]:.1f}" for i in run.tolist()]
        back = [f"{x[i]:.1f} {low[i]:.1f}" for i in run[::-1].tolist()]
        found.append("M" + "L".join(there + back) + "Z")
    return "".join(found)


def _bars(x: Array, top: Array, bottom: Array) -> str:
    return "".join(
        f"M{x[i]:.1f} {top[i]:.1f}V{max(bottom[i], top[i] + 0.5):.1f}"
        for i in np.flatnonzero(np.isfinite(top) & np.isfinite(bottom)).tolist()
    )
