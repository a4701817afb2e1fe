"""The text of the page as HTML, shown before any curve is drawn.

Every text that comes from data goes through `escape`. The scripts, too, only ever insert such
text as text, and the page's own security policy lets no other script or style run.

For paper and for readers without scripts there is a page for each event, with a small picture of
each suspect: its values, what was expected, the evidence below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from vace_ad.alarms.events import (
    ANOMALY,
    BECAME_NORMAL,
    NEAR_MISS,
    NO_DATA,
    Event,
    found_words,
    pair_words,
)
from vace_ad.frames.time import duration_words
from vace_ad.report.curves import Embedding, suspect_svg
from vace_ad.report.data import ReportData, surroundings
from vace_ad.wording import limit_words, number, plural, rarity, rarity_sentence, shortened

NAMED = 0.1  # share of the blame that names a second suspect in the table

# What each diagnostic of the embedding means: (a name, what it says about the detector).
DIAGNOSTICS = {
    "effective_rank_pr": (
        "Effective rank",
        "Number of directions that the embedding uses, as a share of all, weighted so "
        "that strong directions dominate. Near 0 everything lies on one line.",
    ),
    "effective_rank_entropy": (
        "Effective rank, by entropy",
        "The same with more weight on weak directions; always at least as large.",
    ),
    "active_dims": (
        "Directions in use",
        "Share of directions that carry more than a trace of the variation.",
    ),
    "top1_variance": (
        "Strongest direction",
        "Share of all variation along the one strongest direction. Near 1 the embedding has "
        "collapsed and distances in it mean little.",
    ),
}


def headline(data: ReportData) -> str:
    """Return a summary: the number of events, and the strongest one."""
    anomalies = [event for event in data.events if event.kind == ANOMALY]
    found = found_words(data.events)
    text = f"{found[0].upper()}{found[1:]} in {_extent(data)}."
    if not anomalies:
        return escape(text)
    worst = max(anomalies, key=lambda event: np.nan_to_num(event.severity))
    text += f" The strongest began {'at ' if data.time is None else ''}"
    text += data.stamp(worst.start)
    text += f" and lasted {data.length(worst)}"
    if worst.shares:
        text += f"; first suspect: {shortened(max(worst.shares, key=lambda pair: pair[1])[0], 48)}"
    return escape(text + ".")


def summary(data: ReportData) -> str:
    """Return the line of basic facts under the headline."""
    parts = [f"{data.n_rows:,} rows × {plural(len(data.channels), 'channel')}"]
    if data.time is not None:
        parts.append(f"{data.stamp(0)} to {data.stamp(data.n_rows - 1)}")
        parts.append(f"a row every {duration_words(1e6 * data.clock.step)}")
    if data.training is not None:
        start, end = data.training
        parts.append(f"learned from {(end - start) / data.n_rows:.0%} of the rows")
    parts.append(data.alarm_words or limit_words(*data.ends))
    return "".join(f"<li>{escape(part)}</li>" for part in parts)


def events_table(data: ReportData, events: Sequence[Event]) -> str:
    """Return the body of the table of events or near misses, one row each."""
    return "\n".join(_event_row(i, e, data) for i, e in enumerate(events))


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


def what_it_means(event: Event, data: ReportData) -> str:
    """Return what an event is in sentences: what it was, how rare, and what became of it."""
    if event.kind == NO_DATA:
        return "Silence is often a fault of its own."
    said = []
    first = next(iter(data.readings(event).values()), "")
    if first:
        said.append(f"At the peak: {first}.")
    if event.components:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in event.components)
        said.append(f"By component: {shares}.")
    if event.kind == NEAR_MISS:
        share = f" ({event.ratio:.0%} of it)" if math.isfinite(event.ratio) else ""
        said.append(f"It stayed below the limit{share}, so it is no event.")
    if pair_words(event):
        said.append(f"{pair_words(event)}.")
    elif event.signal:
        said.append(f"What stood out: {data.signal_words.get(event.signal, event.signal)}.")
    if math.isfinite(event.severity):
        said.append(f"Severity {event.severity:.0f} of 100.")
    said.append(rarity_sentence(event.probability, event.normal_rows))
    if event.lasting:
        said.append(f"It {BECAME_NORMAL}.")
    return " ".join(sentence for sentence in said if sentence)


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


def _extent(data: ReportData) -> str:
    channels = plural(len(data.channels), "channel")
    if data.time is None:
        return f"{plural(data.n_rows, 'row')} of {channels}"
    return f"{duration_words(1e6 * (float(data.clock.at[-1]) + data.clock.step))} of {channels}"


def _event_row(i: int, event: Event, data: ReportData) -> str:
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
    said = next(iter(data.readings(event).values()), "")
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
        f'<td class="when"><a href="#{word}-{i + 1}">{escape(data.stamp(start))}</a>'
        f"<small>{escape(data.length(event))}</small>{what}</td>"
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


def pages(data: ReportData) -> str:
    """Return an article for each of the most severe events, in order of time."""
    numbered = [(i, event) for i, event in enumerate(data.events, 1) if event.start < event.end]
    worst = sorted(numbered, key=lambda one: -np.nan_to_num(one[1].severity, nan=-1.0))[:MOST]
    found = [_page(i, event, data) for i, event in sorted(worst, key=lambda one: one[0])]
    left = len(numbered) - len(worst)
    if left:
        found.append(f"<p>{left:,} less severe events are in the table alone.</p>")
    return "\n".join(found)


def _page(number: int, event: Event, data: ReportData) -> str:
    first, end = surroundings(event, data.n_rows)
    place = {name: i for i, name in enumerate(data.channels)}
    said = data.readings(event)
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
    ends = f"{data.stamp(event.start)} to {data.stamp(event.end - 1)}"
    axis = f"{data.stamp(first)}</span><span>{data.stamp(end - 1)}"
    return (
        f"<article><h2>Event {number} of {len(data.events)}</h2>"
        f"<p><b>{escape(ends)}</b> ({escape(data.length(event))}). "
        f"{escape(what_it_means(event, data))}</p>{''.join(drawn)}"
        + (f'<p class="ends"><span>{axis}</span></p>' if drawn else "")
        + "</article>"
    )
