"""The text of the page as HTML, shown before any curve is drawn.

Every text that comes from data goes through `escape`. The scripts, too, only ever insert such
text as text, and the page's own security policy lets no other script or style run.

For paper and for readers without scripts there is a page for each event, with a small picture of
each suspect: its values, what was expected, the evidence below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import ANOMALY, NEAR_MISS, NO_DATA, Event, found_words
from vace_ad.frames.segments import run_edges
from vace_ad.frames.time import duration_words
from vace_ad.report.data import Curve, ReportData, TimeAxis
from vace_ad.report.formatting import (
    DIAGNOSTICS,
    length,
    limit_words,
    number,
    readings,
    shortened,
    stamp,
    surroundings,
    what_it_means,
)
from vace_ad.report.tiles import Embedding, binned
from vace_ad.wording import plural, rarity

NAMED = 0.1  # share of the blame that names a second suspect in the table


def headline(data: ReportData, clock: TimeAxis) -> str:
    """Return a summary: the number of events, and the strongest one."""
    anomalies = [event for event in data.events if event.kind == ANOMALY]
    found = found_words(data.events)
    text = f"{found[0].upper()}{found[1:]} in {_extent(data, clock)}."
    if not anomalies:
        return escape(text)
    worst = max(anomalies, key=lambda event: np.nan_to_num(event.severity))
    text += f" The strongest began {'at ' if data.time is None else ''}"
    text += stamp(data, worst.start, clock)
    text += f" and lasted {length(worst, data, clock)}"
    if worst.shares:
        text += f"; first suspect: {shortened(max(worst.shares, key=lambda pair: pair[1])[0], 48)}"
    return escape(text + ".")


def summary(data: ReportData, clock: TimeAxis) -> str:
    """Return the line of basic facts under the headline."""
    parts = [f"{data.n_rows:,} rows × {plural(len(data.channels), 'channel')}"]
    if data.time is not None:
        parts.append(f"{stamp(data, 0, clock)} to {stamp(data, data.n_rows - 1, clock)}")
        parts.append(f"a row every {duration_words(1e6 * clock.step)}")
    if data.training is not None:
        start, end = data.training
        parts.append(f"learned from {(end - start) / data.n_rows:.0%} of the rows")
    parts.append(data.alarm_words or limit_words(*data.ends))
    return "".join(f"<li>{escape(part)}</li>" for part in parts)


def events_table(data: ReportData, clock: TimeAxis, events: Sequence[Event]) -> str:
    """Return the body of the table of events or near misses, one row each."""
    return "\n".join(_event_row(i, e, data, clock) for i, e in enumerate(events))


def components(data: ReportData) -> str:
    """Return the components that events blame, each with its sensors; empty where none is known."""
    shares: dict[str, dict[str, float]] = {}
    blamed: dict[str, list[Event]] = {}
    for event in data.events:
        for name, share in event.shares:
            if component := event.component_of(name):
                own = shares.setdefault(component, {})
                own[name] = own.get(name, 0.0) + share
        for component, _ in event.components:
            blamed.setdefault(component, []).append(event)
    rows = []
    for component in sorted(shares, key=lambda one: -sum(shares[one].values())):
        first = sum(event.components[0][0] == component for event in blamed[component])
        count = plural(first, "event")
        worst = np.fmax.reduce([event.severity for event in blamed[component]])
        own, total = shares[component], sum(shares[component].values())
        sensors = "".join(
            f"<li>{escape(data.label(name))} {share / total:.0%}</li>"
            for name, share in sorted(own.items(), key=lambda pair: -pair[1])
        )
        rows.append(
            f'<tr><th scope="row">{escape(component)}</th><td>{count}</td>'
            f"<td>{worst:.0f}</td><td><ul>{sensors}</ul></td></tr>"
        )
    if not rows:
        return ""
    head = "".join(
        f'<th scope="col">{title}</th>'
        for title in ("Component", "First suspect", "Severity", "Sensors, by share")
    )
    return (
        '<section class="card" id="components" aria-labelledby="components-title">'
        '<h2 id="components-title">Components</h2><div class="scroll"><table><thead><tr>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def trust(data: ReportData) -> str:
    """Return the diagnostics of the detector as list items."""
    lines = data.trust or ["Nothing was recorded about the training of this detector."]
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def geometry(data: ReportData) -> str:
    """Return the diagnostics of the embedding: the verdict, then each with what it means."""
    parts = [f'<p class="verdict">{escape(data.verdict)}</p>'] if data.verdict else []
    rows = []
    for key, value in data.geometry.items():
        name, meaning = DIAGNOSTICS.get(key, (key, ""))
        rows.append(
            f"<div><dt>{escape(name)}</dt><dd><b>{number(float(value), 3)}</b>"
            f" <span>{escape(meaning)}</span></dd></div>"
        )
    if rows:
        parts.append(f'<dl class="geometry">{"".join(rows)}</dl>')
    return "".join(parts) or "<p>No diagnostics were recorded for this run.</p>"


def notes(data: ReportData, embedding: Embedding, watched: Sequence[int]) -> str:
    """Return the notes on the table, and the resolution of the curves."""
    lines = [*data.notes, _detail(data, embedding, watched)]
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def facts(data: ReportData) -> str:
    """Return the facts of the run as a list of terms."""
    return "".join(
        f"<div><dt>{escape(str(key))}</dt><dd>{escape(str(value))}</dd></div>"
        for key, value in data.facts.items()
    )


def _extent(data: ReportData, clock: TimeAxis) -> str:
    channels = plural(len(data.channels), "channel")
    if data.time is None:
        return f"{plural(data.n_rows, 'row')} of {channels}"
    return f"{duration_words(1e6 * (float(clock.at[-1]) + clock.step))} of {channels}"


def _event_row(i: int, event: Event, data: ReportData, clock: TimeAxis) -> str:
    start = max(0, event.start - 1) if event.start == event.end else event.start
    chance = rarity(event.probability, event.normal_rows)
    severe = np.isfinite(event.severity)
    blamed = sorted(event.shares, key=lambda pair: -pair[1])[:2]
    named = [name for i, (name, share) in enumerate(blamed) if i == 0 or share >= NAMED]
    ranked = [data.label(name) for name in named]
    short = [escape(shortened(name, 30)) for name in ranked]
    names = " ".join(
        f"<span>{name}{',' * (i + 1 < len(short))}</span>" for i, name in enumerate(short)
    )
    what = f'<span class="blame" title="{escape(", ".join(ranked))}">{names}</span>'
    what = what if ranked else ""
    said = next(iter(readings(event, data).values()), "")
    what += f'<span class="reading">{escape(said)}</span>' if said else ""
    if event.kind == NO_DATA:
        what = '<span class="tag">no data</span>'
    bar = (
        f'<b>{event.severity:.0f}</b><svg viewBox="0 0 100 10" preserveAspectRatio="none" '
        f'aria-hidden="true"><rect width="{event.severity:.0f}" height="10"/></svg>'
    )
    near = event.kind == NEAR_MISS
    if near:
        bar = f"<small>{event.ratio:.0%}</small>" if np.isfinite(event.ratio) else "–"
        severe = True
    word = "near" if near else "event"
    return (
        f'<tr data-{word}="{i}"><td class="index">{i + 1}</td>'
        f'<td class="when"><a href="#{word}-{i + 1}">{escape(stamp(data, start, clock))}</a>'
        f"<small>{escape(length(event, data, clock))}</small>{what}</td>"
        f'<td class="severity"{f""" title="in normal operation: {chance}" """ if chance else ""}>'
        f"{bar if severe else '–'}</td></tr>"
    )


def _detail(data: ReportData, embedding: Embedding, watched: Sequence[int]) -> str:
    if embedding.share_of_rows == 1:
        return "Every row of the table is in this file."
    spans = [(event.start, event.end) for event in data.events]
    everyone = range(len(embedding.tiles))
    coarse = f"the lowest and highest value of every {embedding.finest_complete:,} rows"
    if spans and embedding.has_rows_of(spans, everyone):
        where = "around every event"
    elif spans and embedding.has_rows_of(spans, watched):
        where = "of the score and the most suspected channels around every event"
    else:
        where = f"of {embedding.share_of_rows:.0%} of the curves"
    return (
        f"To keep this file small it holds every row {where}, and {coarse} elsewhere: "
        "no spike is lost, but the finest detail is not everywhere."
    )


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
    _, low, high = envelope(values, POINTS)
    _, lower, _ = envelope(curve.lower, POINTS)
    _, _, upper = envelope(curve.upper, POINTS)
    _, _, nats = envelope(curve.nats, POINTS)
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
    gone = svg_bars(x, y(high) + left, y(low)) + svg_line(x, y((low + high) / 2) + left)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">'
        f'<rect x="{start:.1f}" y="0" width="{max(end - start, 2):.1f}" height="{HEIGHT}" '
        f'fill="{EVENT}" fill-opacity="0.13"/>'
        f'<path d="{_area(x, y(lower), y(upper))}" fill="{EXPECTED}" fill-opacity="0.2"/>'
        f'<path d="{svg_line(x, y((lower + upper) / 2))}" stroke="{EXPECTED}" fill="none"/>'
        f'<path d="{svg_bars(x, y(high), y(low))}{svg_line(x, y((low + high) / 2))}" '
        'stroke="currentColor" stroke-width="1.3" fill="none"/>'
        f'<path d="{gone}" stroke="{EVENT}" stroke-width="2" fill="none"/>'
        f'<path d="{svg_bars(x, HEIGHT - STRIP * nats / height, np.full(n, float(HEIGHT)))}" '
        f'stroke="{EVENT}" stroke-width="{max(WIDTH / n - 0.5, 1):.1f}" fill="none"/>'
        f'<text x="2" y="{HEIGHT - STRIP + 8}" font-size="10" fill="currentColor">'
        f"evidence, up to {height:.0f} nats</text></svg>"
    )


def envelope(scores: NDArray[np.floating], most: int) -> tuple[NDArray[np.intp], Array, Array]:
    """Return at most so many rows, and the lowest and highest score from each to the next."""
    wide = np.where(np.isfinite(scores), scores, np.nan).astype(np.float64)
    size = max(1, -(-len(wide) // most))
    bins = binned(wide, size)  # (k, size)
    low, high = np.fmin.reduce(bins, axis=1), np.fmax.reduce(bins, axis=1)
    return np.arange(len(bins)) * size, low, high


def _runs(*lines: Array) -> Iterable[NDArray[np.intp]]:
    """Places of columns that follow each other and are known in all lines."""
    known = np.asarray(np.isfinite(lines).all(axis=0))
    return (np.arange(a, b) for a, b in run_edges(known).tolist())


def svg_line(x: Array, y: Array) -> str:
    """Return the path of a line, broken where a value is missing."""
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


def svg_bars(x: Array, top: Array, bottom: Array, least: float = 0.5) -> str:
    """Return the path of vertical bars, none shorter than `least`."""
    return "".join(
        f"M{x[i]:.1f} {top[i]:.1f}V{max(bottom[i], top[i] + least):.1f}"
        for i in np.flatnonzero(np.isfinite(top) & np.isfinite(bottom)).tolist()
    )
