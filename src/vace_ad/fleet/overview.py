"""The overview of a fleet: one table, one list of incidents, one page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from vace_ad.alarms.events import found_words
from vace_ad.app.results import RUN, plain, versions, write_frame, writing
from vace_ad.atomic import write_text
from vace_ad.fleet.entities import MachineRow
from vace_ad.fleet.incidents import FleetIncident, short_span, short_time
from vace_ad.fleet.runner import FleetRun
from vace_ad.fleet.task import REPORT
from vace_ad.report.write import policy_digest, static_text
from vace_ad.wording import listed, plural


def overview_frame(run: FleetRun) -> pl.DataFrame:
    """A row for each machine, the most severe first."""
    numbers = incident_numbers(run.incidents)
    columns = {
        "machine": [row.machine for row in run.rows],
        "status": [row.status for row in run.rows],
        "severity": [row.severity if row.anomalies else None for row in run.rows],
        "events": [len(row.anomalies) for row in run.rows],
        "no_data": [len(row.events) - len(row.anomalies) for row in run.rows],
        "since": [row.since for row in run.rows],
        "components": [", ".join(row.components) for row in run.rows],
        "sensors": [", ".join(row.sensors) for row in run.rows],
        "incidents": [", ".join(map(str, numbers.get(row.machine, ()))) for row in run.rows],
        "rows": [row.rows for row in run.rows],
        "channels": [row.channels for row in run.rows],
        "seconds": [row.seconds for row in run.rows],
        "folder": [row.folder or "" for row in run.rows],
        "error": [row.error or "" for row in run.rows],
    }
    floats = {"severity": pl.Float64, "seconds": pl.Float64}
    return pl.DataFrame(columns, schema_overrides=floats)


def incident_frame(incidents: Sequence[FleetIncident]) -> pl.DataFrame:
    """A row for each incident, the most severe first."""
    text, count = pl.String, pl.Int64
    schema = {"incident": count, "start": text, "end": text, "severity": pl.Float64,
              "machines": count, "events": count, "names": text, "sensors": text}  # fmt: skip
    rows = [
        (number, one.start, one.end, one.severity, len(one.machines), one.events,
         ", ".join(one.machines), ", ".join(one.sensors))
        for number, one in enumerate(incidents, 1)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema, orient="row")


def incident_numbers(incidents: Sequence[FleetIncident]) -> dict[str, list[int]]:
    """The incidents of each machine, by their numbers in the list."""
    numbers: dict[str, list[int]] = {}
    for number, incident in enumerate(incidents, 1):
        for machine in incident.machines:
            numbers.setdefault(machine, []).append(number)
    return numbers


def write_overview(run: FleetRun, out: Path, facts: dict[str, Any], budget: str) -> None:
    """Write overview.csv, incidents.csv, run.json and index.html, each whole."""
    with writing(str(out)):
        write_frame(overview_frame(run), out / "overview.csv")
        write_frame(incident_frame(run.incidents), out / "incidents.csv")
        write_page(run, out / "index.html", budget, incident_numbers(run.incidents))
        content = plain({**facts, "notes": run.notes, "versions": versions()})
        write_text(out / RUN, json.dumps(content, indent=2, allow_nan=False) + "\n")


_NAMED = 8  # machines that an incident names in full
_INCIDENTS = 200  # on the page; incidents.csv has all
_QUIET = 50  # machines without events that are listed with the others


def write_page(
    run: FleetRun, path: Path, budget: str, numbers: Mapping[str, Sequence[int]]
) -> None:
    """Write the page; names are text, and nothing is fetched or run but its own filter."""
    style = static_text("style.css") + static_text("style.css", "vace_ad.fleet")
    early, script = static_text("early.js"), static_text("filter.js", "vace_ad.fleet")
    policy = (
        f"default-src 'none'; style-src {policy_digest(style)}; "
        f"script-src {policy_digest(early)} {policy_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    body = [
        f"<header class='page'><h1 class='headline'>{escape(headline(run))}</h1>",
        f"<ul class='summary'>{_summary(run, budget)}</ul>",
        *(f"<p class='warning'>{escape(note)}</p>" for note in run.notes),
        _contents(run.incidents),
        "</header>",
        _incidents(run.incidents),
        "<section class='card'><h2 id='machines'>Machines</h2>",
        "<p><input id='filter' type='search' placeholder='Filter by name, sensor or status' "
        "aria-label='Filter machines'> <span id='shown' aria-live='polite'></span></p>",
        _machines(run.rows, numbers, path),
        "</section>",
    ]
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(headline(run))}</title><script>{early}</script><style>{style}</style></head>"
        "<body class='fleet'><main>"
        f"{''.join(body)}</main><script>{script}</script></body></html>\n"
    )
    write_text(path, page)


def headline(run: FleetRun) -> str:
    """What was found, in one line."""
    troubled = sum(bool(row.anomalies) for row in run.rows)
    machines = plural(len(run.rows), "machine")
    if not troubled:
        return f"{found_words(()).capitalize()} on {machines}"
    return f"{plural(len(run.incidents), 'incident')} on {troubled:,} of {machines}"


def _summary(run: FleetRun, budget: str) -> str:
    parts = [budget]
    for status, words in (
        ("borrowed", "scored with the shared model"),
        ("short", "with too few rows"),
        ("failed", "failed"),
    ):
        count = run.count(status)
        parts += [f"{count:,} {words}"] if count else []
    return "".join(f"<li>{escape(part)}</li>" for part in parts)


def _contents(incidents: Sequence[FleetIncident]) -> str:
    """A link past a long list of incidents."""
    if len(incidents) <= _NAMED:
        return ""
    return "<p><a href='#machines'>Machines by severity</a></p>"


def _incidents(incidents: Sequence[FleetIncident]) -> str:
    if not incidents:
        return ""
    lines = []
    for number, one in enumerate(incidents[:_INCIDENTS], 1):
        cells = (
            f"{number}",
            f"{one.severity:.0f}",
            short_span(one.start, one.end),
            f"{len(one.machines):,}",
            listed(one.machines, _NAMED),
            ", ".join(one.sensors),
        )
        lines.append(f"<tr id='incident-{number}'>{_cells(cells)}</tr>")
    left = len(incidents) - _INCIDENTS
    tail = f"<p>and {left:,} less severe ones in incidents.csv</p>" if left > 0 else ""
    head = ("", "severity", "when", "machines", "which", "sensors")
    table = _table(head, lines, "incidents")
    return f"<section class='card'><h2>Incidents</h2>{table}{tail}</section>"


def _machines(rows: Sequence[MachineRow], numbers: Mapping[str, Sequence[int]], path: Path) -> str:
    """The table of machines; many without events are folded away, where the filter finds them."""
    quiet = [row for row in rows if row.status == "ok" and not row.events]
    if len(quiet) <= _QUIET:
        return _machine_table(rows, numbers, path)
    folded = set(map(id, quiet))
    loud = [row for row in rows if id(row) not in folded]
    table = _machine_table(loud, numbers, path) if loud else ""
    return (
        f"{table}<details id='quiet'><summary>{len(quiet):,} machines where nothing was found"
        f"</summary>{_machine_table(quiet, numbers, path)}</details>"
    )


def _machine_table(
    rows: Sequence[MachineRow], numbers: Mapping[str, Sequence[int]], path: Path
) -> str:
    lines = []
    grouped = any(row.components for row in rows)
    for row in rows:
        name = escape(row.machine)
        if row.folder is not None and (path.parent / "machines" / row.folder / REPORT).is_file():
            name = f"<a href='machines/{quote(row.folder)}/{REPORT}'>{name}</a>"
        links = ", ".join(f"<a href='#incident-{n}'>{n}</a>" for n in numbers.get(row.machine, ()))
        cells = {
            "severity": f"{row.severity:.0f}" if row.anomalies else "",
            "events": f"{len(row.anomalies) or ''}",
            "since": short_time(row.since) if row.anomalies else "",
            **({"components": ", ".join(row.components)} if grouped else {}),
            "sensors": ", ".join(row.sensors),
        }
        labelled = "".join(
            f"<td data-label='{label}'>{escape(cell)}</td>" for label, cell in cells.items()
        )
        gone = row.vanished_since
        said = row.error or ("" if row.status == "ok" else row.status)
        said = f"no data since {short_time(gone)}" if gone else said
        lines.append(
            f"<tr class='{row.status}'><th scope='row'>{name}</th>{labelled}"
            f"<td data-label='incident'>{links}</td><td>{escape(said)}</td></tr>"
        )
    parts = ["components"] if grouped else []
    head = ("machine", "severity", "events", "since", *parts, "sensors", "incidents", "")
    return _table(head, lines, "machines")


def _table(head: Sequence[str], lines: Sequence[str], kind: str) -> str:
    titles = "".join(f"<th scope='col'>{escape(title)}</th>" for title in head)
    return (
        f"<div class='wide'><table class='{kind}'><thead><tr>{titles}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cells(cells: Sequence[str]) -> str:
    return "".join(f"<td>{escape(cell)}</td>" for cell in cells)
