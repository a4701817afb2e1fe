"""Formats numbers, times and diagnostics as text."""

from __future__ import annotations

import math
from datetime import timedelta

from vace_ad.alarms.events import (
    BECAME_NORMAL,
    NEAR_MISS,
    NO_DATA,
    Event,
    pair_words,
    reading_words,
)
from vace_ad.frames.time import duration_words
from vace_ad.frames.timestamps import offset_words
from vace_ad.report.data import ReportData, TimeAxis
from vace_ad.wording import plural, rarity

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

MIN_CONTEXT = 64  # rows shown on either side of even the shortest event
CONTEXT = 1.0  # rows shown on either side, as a multiple of the event's own length

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


def number(value: float, digits: int = 4) -> str:
    """Return a number with so many significant digits, grouped by thousands where large."""
    if not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if 1e-4 <= abs(value) < 10**digits:
        return f"{value:.{digits}g}"
    return f"{value:,.0f}" if 1 <= abs(value) < 1e9 else f"{value:.{digits - 1}e}"


def shortened(name: str, longest: int = 36) -> str:
    """Return a long name without its middle: what tells names apart is often at the end."""
    if len(name) <= longest:
        return name
    tail = longest // 2
    return f"{name[: longest - tail - 1]}…{name[-tail:]}"


def limit_words(first: float, last: float) -> str:
    """Return e.g. "limit 1.95 at the start, 3.88 at the end", one number where it stays."""
    start, end = number(first, 3), number(last, 3)
    if start == end:
        return f"limit {start}"
    return f"limit {start} at the start, {end} at the end"


def rarity_sentence(probability: float, normal_rows: int | None) -> str:
    """Return the same as a sentence; empty where it is not known."""
    said = rarity(probability, normal_rows)
    if said.startswith("none") and normal_rows is not None:
        return f"It is rarer than anything in {plural(normal_rows, 'normal row')}."
    return f"Normal operation shows one as strong about once in {said[5:]}." if said else ""


def stamp(data: ReportData, row: int, clock: TimeAxis) -> str:
    """Return when a row was, e.g. "14 Mar 2026 03:20+01:00", as finely as the table is sampled."""
    if data.time is None:
        return f"row {row:,}"
    ahead = max((one for one in data.offsets if one[0] <= row), default=None)
    minutes, offset = (0, "") if ahead is None else (ahead[1], offset_words(ahead[1]))
    when = data.time[row].astype("datetime64[ms]").item() + timedelta(minutes=minutes)
    text = f"{when.day} {MONTHS[when.month - 1]} {when.year}"
    if clock.step >= 86_400_000 and when.hour == when.minute == when.second == 0:
        return text
    text += f"{when: %H:%M}"
    if clock.step < 60_000 or when.second:
        text += f"{when::%S}"
    return text + (f".{when.microsecond // 1000:03d}" if clock.step < 100 else "") + offset


def length(event: Event, data: ReportData, clock: TimeAxis) -> str:
    """Return how long an event lasts: in time where there is time, else in rows."""
    rows = event.end - event.start
    if data.time is None:
        return plural(rows, "row")
    at = data.time.astype("datetime64[ns]")
    if rows == 0:  # a gap: from the last row before to the first after
        before = max(0, event.start - 1)
        after = min(event.start, len(at) - 1)
        return duration_words(float(at[after] - at[before]))
    return duration_words(float(at[event.end - 1] - at[event.start]) + 1e6 * clock.step)


def surroundings(event: Event, n_rows: int) -> tuple[int, int]:
    """Return the rows [start, end) of an event with its before and after."""
    margin = max(MIN_CONTEXT, round(CONTEXT * (event.end - event.start)))
    return max(0, event.start - margin), min(n_rows, event.end + margin)


def readings(event: Event, data: ReportData) -> dict[str, str]:
    """Return each suspect at the peak in words: "power 49.6 kW, expected 31.2 to 35.1"."""
    return {
        one.channel: reading_words(one, data.units.get(one.channel, ""))
        for one in event.readings
        if all(map(math.isfinite, one[1:]))
    }


def what_it_means(event: Event, data: ReportData) -> str:
    """Return what an event is in sentences: what it was, how rare, and what became of it."""
    if event.kind == NO_DATA:
        return "Silence is often a fault of its own."
    said = []
    first = next(iter(readings(event, data).values()), "")
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
