"""Assemble the page: text, style, scripts and packed curves in one file.

The data of the scripts is one JSON document and a few packed arrays.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import ANOMALY, NEAR_MISS, NO_DATA, Event
from vace_ad.atomic import whole_file
from vace_ad.report import page
from vace_ad.report.curves import BLOCK, FACTOR, TILE, Embedding, drawable, embed, pack
from vace_ad.report.data import ReportData, TimeAxis, surroundings
from vace_ad.wording import rarity

BUDGET = 4_800_000  # bytes: opens quickly, goes through every mail
WORDS_AT_MOST = 400_000  # bytes kept free for the page itself

# In the order in which they are joined into one script.
SCRIPTS = (
    "format", "dom", "clock", "store", "view", "gestures", "curve", "range",
    "panels", "overview", "timeline", "trajectory", "detail", "chooser", "eventlist",
    "download", "whatif", "app",
)  # fmt: skip


def write_report(data: ReportData, path: str | os.PathLike[str], *, budget: int = BUDGET) -> None:
    """Write the report as one HTML file of at most about `budget` bytes.

    The file appears whole or not at all. Where the curves do not fit, fine detail is kept
    around the events first, and the page says so.
    """
    blobs = {"clock": pack_clock(data.clock), **pack_trajectory(data)}
    columns = curves(data, channels_by_blame(data))
    own = [column.role for column in columns].index("channel")  # evidence comes before
    watched = range(own + min(SHOWN_AT_FIRST, len(data.channels)))
    looked_at = {"events": data.events, "nearly": data.near_misses}
    events = {name: [_event(event, data) for event in some] for name, some in looked_at.items()}
    table = page.events_table(data, data.events)
    pages = page.pages(data)
    fixed = WORDS_AT_MOST + sum(map(len, blobs.values())) + len(json.dumps(events)) + len(table)
    fixed += len(pages)
    spans = [surroundings(event, data.n_rows) for some in looked_at.values() for event in some]
    embedding = embed([column.line for column in columns], spans, budget - fixed)

    slots = {
        "title": escape(data.title),
        "headline": page.headline(data),
        "summary": page.summary(data),
        "events": table,
        "nearly": page.events_table(data, data.near_misses),
        "pages": pages,
        "components": page.components(data),
        "trust": page.trust(data),
        "geometry": page.geometry(data),
        "notes": page.notes(data, embedding, watched),
        "facts": page.facts(data),
        "command": escape(data.command),
        "document": _json_in_html(document(data, embedding, columns, events, blobs)),
        **_style_and_script(),
    }
    tiles = (tile for series in embedding.tiles for level in series for tile in level)
    with whole_file(Path(path)) as draft, draft.open("wb") as file:
        file.writelines(_fill(slots, [*blobs.values(), *tiles]))


def _style_and_script() -> dict[str, str]:
    """Return style, scripts, and a policy that lets nothing else run and nothing be fetched."""
    style, early = static_text("style.css"), static_text("early.js")
    script = (
        '"use strict";\n(() => {\n' + "\n".join(static_text(f"{n}.js") for n in SCRIPTS) + "})();"
    )
    policy = (
        f"default-src 'none'; style-src {policy_digest(style)}; "
        f"script-src {policy_digest(early)} {policy_digest(script)}"
    )
    return {"style": style, "early": early, "script": script, "policy": policy}


def static_text(name: str, package: str = "vace_ad.report") -> str:
    """Return a file that comes with a package."""
    return (files(package) / "static" / name).read_text(encoding="utf-8")


def policy_digest(text: str) -> str:
    """Return how a security policy names a script or a style that may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json_in_html(content: Mapping[str, Any]) -> str:
    """Return JSON in which no text can end the script element or open a comment."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _fill(slots: Mapping[str, str], packed: list[bytes]) -> Iterator[bytes]:
    """Yield the page: the template with its slots filled, in one pass, so none is filled twice."""
    for i, part in enumerate(re.split(r"\{\{(\w+)\}\}", static_text("page.html"))):
        if i % 2 == 0:
            yield part.encode()
        elif part == "packed":
            yield from packed
        else:
            yield slots[part].encode(errors="replace")  # half a surrogate pair is no text


SHOWN_AT_FIRST = 6  # channels drawn before anyone chooses
BLAMED = 6  # suspects detailed for an event
LEAST_SHARE = 0.005  # of the blame: less would be shown as 0 %
MAX_POINTS = 20_000  # of the trajectory, outside events


def document(
    data: ReportData,
    embedding: Embedding,
    columns: Sequence[Column],
    events: Mapping[str, list[dict[str, Any]]],
    blobs: Mapping[str, bytes],
) -> dict[str, Any]:
    """Return the data of the scripts; curves are in the packed part, by length."""
    clock = data.clock
    series = [
        {
            "name": column.name,
            "role": column.role,
            "column": column.channel,
            "chars": [list(map(len, level)) for level in tiles],
        }
        for column, tiles in zip(columns, embedding.tiles, strict=True)
    ]
    return {
        "rows": data.n_rows,
        "threshold": data.level if np.isfinite(data.level) else None,
        "thresholdEnds": [value if np.isfinite(value) else None for value in data.ends],
        "whatIf": [[float(w.shift), int(w.events), w.words] for w in data.what_if],
        "file": data.title,
        "training": None if data.training is None else [int(row) for row in data.training],
        "idle": [{"kind": k, "start": int(a), "end": int(b)} for k, a, b in data.idle],
        "time": {
            "origin": clock.origin_ms, "zone": data.time_zone, "step": clock.step,
            "gap": clock.gap, "knots": len(clock.rows),
            "offsets": [[np.interp(r, clock.rows, clock.at), m] for r, m in data.offsets],
        },
        "layout": {"tile": TILE, "block": BLOCK, "factor": FACTOR, "bits": embedding.bits},
        "blobs": {name: len(blob) for name, blob in blobs.items()},
        "series": series,
        "shown": SHOWN_AT_FIRST,
        "signalWords": dict(data.signal_words),
        **events,
    }  # fmt: skip


class Column(NamedTuple):
    """A curve of the page."""

    name: str
    role: str  # score, signal, threshold, channel, lower, upper, nats
    channel: int  # of the table; -1 where it belongs to none
    line: NDArray[np.floating]  # (n,)


def curves(data: ReportData, order: Sequence[int]) -> list[Column]:
    """Return all curves, the ones to look at first coming first; channels in this order.

    What was expected of a channel comes behind the channels that are shown at first.
    """
    lines = [Column("Evidence", "score", -1, data.scores)]
    lines += [Column(name, "signal", -1, line) for name, line in data.signals.items()]
    if data.line is not None:
        lines.append(Column("Limit", "threshold", -1, data.line))
    channels = [
        Column(data.label(data.channels[i]), "channel", i, data.values[:, i]) for i in order
    ]
    place = {name: i for i, name in enumerate(data.channels)}
    expected = [
        Column(data.label(name), role, place[name], line)
        for name, curve in data.expected.items()
        for role, line in curve._asdict().items()
    ]
    return [*lines, *channels[:SHOWN_AT_FIRST], *expected, *channels[SHOWN_AT_FIRST:]]


def _event(event: Event, data: ReportData) -> dict[str, Any]:
    """An event or a near miss as the scripts need it."""
    gap = event.start == event.end
    first = max(0, event.start - 1) if gap else event.start
    last = min(event.start, data.n_rows - 1) if gap else event.end - 1
    shares = sorted(event.shares, key=lambda pair: -pair[1])[:BLAMED]
    shares = [pair for i, pair in enumerate(shares) if i == 0 or pair[1] >= LEAST_SHARE]
    place = {name: i for i, name in enumerate(data.channels)}
    said = data.readings(event)
    return {
        "start": int(event.start),
        "end": int(event.end),
        "around": [int(row) for row in surroundings(event, data.n_rows)],
        "kind": NO_DATA if event.kind == NO_DATA else ANOMALY,
        "signal": event.signal,
        "conditions": event.conditions,
        "severity": round(float(event.severity)) if np.isfinite(event.severity) else None,
        "from": data.stamp(first),
        "to": data.stamp(last),
        "peak": None if gap else data.stamp(event.peak),
        "lasts": data.length(event),
        "words": page.what_it_means(event, data),
        "rarity": rarity(event.probability, event.normal_rows),
        "near": event.kind == NEAR_MISS,
        "blame": [
            {
                "column": place[name],
                "share": float(share),
                "typical": typical_values(data.values[:, place[name]], event),
                "reading": said.get(name, ""),
            }
            for name, share in shares
        ],
    }


def pack_clock(clock: TimeAxis) -> bytes:
    """Pack the axis: the rows of its knots, then where they lie."""
    return pack(clock.rows.astype("<f8").tobytes() + clock.at.astype("<f8").tobytes())


def pack_trajectory(data: ReportData) -> dict[str, bytes]:
    """Thin the trajectory, sparing the events, and pack rows, then x, then y."""
    if data.trajectory is None or data.trajectory_rows is None:
        return {}
    rows, points = data.trajectory_rows, data.trajectory
    keep = np.zeros(len(rows), dtype=bool)
    keep[:: max(1, -(-len(rows) // MAX_POINTS))] = True
    for event in data.events:
        keep |= (rows >= event.start) & (rows < event.end)
    keep &= np.isfinite(points).all(axis=1)
    kept: NDArray[np.floating] = points[keep].T  # (2, kept)
    return {"trajectory": pack(rows[keep].astype("<f8").tobytes() + kept.astype("<f4").tobytes())}


def typical_values(column: NDArray[np.floating], event: Event) -> list[float | None]:
    """Return a channel's median before, during and after an event; None where it has no value."""
    first, last = surroundings(event, len(column))
    parts = (first, event.start), (event.start, event.end), (event.end, last)
    return [_median(drawable(column[a:b])) for a, b in parts]


def channels_by_blame(data: ReportData) -> list[int]:
    """Return all channel numbers, the one blamed most over all events first."""
    blame = np.zeros(len(data.channels))
    place = {name: i for i, name in enumerate(data.channels)}
    for event in data.events:
        weight = event.severity if np.isfinite(event.severity) else 0.0
        for name, share in event.shares:
            blame[place[name]] += weight * share
    return [int(i) for i in np.argsort(-blame, kind="stable")]


def _median(values: NDArray[np.float64]) -> float | None:
    there = values[~np.isnan(values)]
    return float(np.median(there)) if len(there) else None
