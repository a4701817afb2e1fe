"""The HTML page of a fleet: incidents, then machines by severity, with links to reports."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from vace_ad.alarms.events import found_words
from vace_ad.atomic import whole_file
from vace_ad.fleet.incidents import FleetIncident
from vace_ad.fleet.results import MachineRow
from vace_ad.fleet.runner import FleetRun
from vace_ad.fleet.task import REPORT
from vace_ad.fleet.time_spans import short_span, short_time
from vace_ad.fleet.vanished import vanished_since
from vace_ad.wording import plural

_NAMED = 8  # machines that an incident names in full
_INCIDENTS = 200  # on the page; incidents.csv has all
_QUIET = 50  # machines without events that are listed with the others


def write_page(
    run: FleetRun, path: Path, budget: str, numbers: Mapping[str, Sequence[int]]
) -> None:
    """Write the page; names are text, and nothing is fetched or run but its own filter."""
    style = _static("style.css", "vace_ad.report") + _static("style.css")
    early, script = _static("early.js", "vace_ad.report"), _static("filter.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; "
        f"script-src {_digest(early)} {_digest(script)}; "
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
    with whole_file(path) as draft:
        draft.write_text(page, encoding="utf-8", errors="replace")


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
    """A way past a long list of incidents."""
    if len(incidents) <= _NAMED:
        return ""
    return "<p><a href='#machines'>Machines by severity</a></p>"


def _incidents(incidents: Sequence[FleetIncident]) -> str:
    if not incidents:
        return ""
    lines = []
    for number, one in enumerate(incidents[:_INCIDENTS], 1):
        names = ", ".join(one.machines[:_NAMED])
        more = f" and {len(one.machines) - _NAMED:,} more" if len(one.machines) > _NAMED else ""
        cells = (
            f"{number}",
            f"{one.severity:.0f}",
            short_span(one.start, one.end),
            f"{len(one.machines):,}",
            names + more,
            ", ".join(one.sensors),
        )
        lines.append(f"<tr id='incident-{number}'>{_cells(cells)}</tr>")
    left = len(incidents) - _INCIDENTS
    tail = f"<p>and {left:,} less severe ones in incidents.csv</p>" if left > 0 else ""
    head = ("", "severity", "when", "machines", "which", "sensors")
    table = _table(head, lines, "incidents")
    return f"<section class='card'><h2>Incidents</h2>{table}{tail}</section>"


def _machines(rows: Sequence[MachineRow], numbers: Mapping[str, Sequence[int]], path: Path) -> str:
    """Those with something to say; many quiet ones are folded away, where the filter finds them."""
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
    from vace_ad.fleet.overview import components_of, sensors_of, since

    lines = []
    grouped = any(components_of(row) for row in rows)
    for row in rows:
        name = escape(row.machine)
        if row.folder is not None and (path.parent / "machines" / row.folder / REPORT).is_file():
            name = f"<a href='machines/{quote(row.folder)}/{REPORT}'>{name}</a>"
        links = ", ".join(f"<a href='#incident-{n}'>{n}</a>" for n in numbers.get(row.machine, ()))
        cells = {
            "severity": f"{row.severity:.0f}" if row.anomalies else "",
            "events": f"{len(row.anomalies) or ''}",
            "since": short_time(since(row)) if row.anomalies else "",
            **({"components": ", ".join(components_of(row))} if grouped else {}),
            "sensors": ", ".join(sensors_of(row)),
        }
        labelled = "".join(
            f"<td data-label='{label}'>{escape(cell)}</td>" for label, cell in cells.items()
        )
        gone = vanished_since(row)
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


def _static(name: str, package: str = "vace_ad.fleet") -> str:
    return (files(package) / "static" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
