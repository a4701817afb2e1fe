"""Put the page together: words, style, scripts and packed curves in one file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from vace_ad.report import page, printout
from vace_ad.report.data import ReportData
from vace_ad.report.document import (
    SHOWN_AT_FIRST,
    channels_by_blame,
    curves,
    document,
    event_records,
    pack_clock,
    pack_trajectory,
    surroundings,
)
from vace_ad.report.tiles import embed
from vace_ad.report.time_axis import make_clock

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
    clock = make_clock(data.time, data.n_rows)
    blobs = {"clock": pack_clock(clock), **pack_trajectory(data)}
    columns = curves(data, channels_by_blame(data))
    own = [column.role for column in columns].index("channel")  # evidence comes before
    watched = range(own + min(SHOWN_AT_FIRST, len(data.channels)))
    events = event_records(data, clock)
    table = page.events_table(data, clock, data.events)
    pages = printout.pages(data, clock)
    fixed = WORDS_AT_MOST + sum(map(len, blobs.values())) + len(json.dumps(events)) + len(table)
    fixed += len(pages)
    looked_at = (*data.events, *data.near_misses)
    spans = [surroundings(event, data.n_rows) for event in looked_at]
    embedding = embed([column.line for column in columns], spans, budget - fixed)

    slots = {
        "title": escape(data.title),
        "headline": page.headline(data, clock),
        "summary": page.summary(data, clock),
        "events": table,
        "nearly": page.events_table(data, clock, data.near_misses),
        "pages": pages,
        "components": page.components(data),
        "trust": page.trust(data),
        "geometry": page.geometry(data),
        "notes": page.notes(data, embedding, watched),
        "facts": page.facts(data),
        "command": escape(data.command),
        "document": _json_in_html(document(data, clock, embedding, columns, events, blobs)),
        **_style_and_script(),
    }
    tiles = (tile for series in embedding.tiles for level in series for tile in level)
    _write_whole(Path(path), _fill(slots, [*blobs.values(), *tiles]))


def _style_and_script() -> dict[str, str]:
    """Return style, scripts, and a policy that lets nothing else run and nothing be fetched."""
    style, early = _static("style.css"), _static("early.js")
    script = '"use strict";\n(() => {\n' + "\n".join(_static(f"{n}.js") for n in SCRIPTS) + "})();"
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; "
        f"script-src {_digest(early)} {_digest(script)}"
    )
    return {"style": style, "early": early, "script": script, "policy": policy}


def _static(name: str) -> str:
    return (files("vace_ad.report") / "static" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json_in_html(content: Mapping[str, Any]) -> str:
    """Return JSON in which no text can end the script element or open a comment."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _fill(slots: Mapping[str, str], packed: list[bytes]) -> Iterator[bytes]:
    """Yield the page: the template with its slots filled, in one pass, so none is filled twice."""
    for i, part in enumerate(re.split(r"\{\{(\w+)\}\}", _static("page.html"))):
        if i % 2 == 0:
            yield part.encode()
        elif part == "packed":
            yield from packed
        else:
            yield slots[part].encode(errors="replace")  # half a surrogate pair is no text


def _write_whole(path: Path, parts: Iterator[bytes]) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.writelines(parts)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
