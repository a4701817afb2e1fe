"""A page an event, for paper and for readers without scripts."""

from __future__ import annotations

from html import escape

import numpy as np

from vace_ad.report.context import surroundings
from vace_ad.report.data import ReportData, ReportEvent
from vace_ad.report.drawing import suspect_svg
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


def _page(number: int, event: ReportEvent, data: ReportData, clock: TimeAxis) -> str:
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
