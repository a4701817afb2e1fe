"""The overview of a fleet: one table, one list of incidents, one page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vace_ad.atomic import whole_file
from vace_ad.fleet.incidents import FleetIncident
from vace_ad.fleet.page import write_page
from vace_ad.fleet.results import MachineRow
from vace_ad.fleet.runner import FleetRun
from vace_ad.fleet.vanished import vanished_since
from vace_ad.frames.write import write_frame

if TYPE_CHECKING:
    import polars as pl

SENSORS = 3  # named in the overview


def sensors_of(row: MachineRow) -> list[str]:
    """The channels that a machine's worst event blames, highest first."""
    worst = worst_event(row)
    return [] if worst is None else list(worst["shares"])[:SENSORS]


def components_of(row: MachineRow) -> list[str]:
    """The components that a machine's worst event blames, highest first."""
    worst = worst_event(row)
    return [] if worst is None else list(worst.get("components", {}))[:SENSORS]


def worst_event(row: MachineRow) -> dict[str, Any] | None:
    """The most severe event of a machine."""
    return max(row.anomalies, key=lambda event: event["severity"] or 0.0, default=None)


def since(row: MachineRow) -> str:
    """When the worst event began: its time, else its row; of a vanished machine, its last."""
    worst = worst_event(row)
    if worst is None:
        return vanished_since(row) or ""
    return str(worst["start"] if worst["start_time"] is None else worst["start_time"])


def overview_frame(run: FleetRun) -> pl.DataFrame:
    """A row for each machine, the most severe first."""
    import polars as pl

    numbers = incident_numbers(run.incidents)
    columns = {
        "machine": [row.machine for row in run.rows],
        "status": [row.status for row in run.rows],
        "severity": [row.severity if row.anomalies else None for row in run.rows],
        "events": [len(row.anomalies) for row in run.rows],
        "no_data": [len(row.events) - len(row.anomalies) for row in run.rows],
        "since": [since(row) for row in run.rows],
        "components": [", ".join(components_of(row)) for row in run.rows],
        "sensors": [", ".join(sensors_of(row)) for row in run.rows],
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
    import polars as pl

    return pl.DataFrame(
        {
            "incident": pl.Series(range(1, len(incidents) + 1), dtype=pl.Int64),
            "start": pl.Series([one.start for one in incidents], dtype=pl.String),
            "end": pl.Series([one.end for one in incidents], dtype=pl.String),
            "severity": pl.Series([one.severity for one in incidents], dtype=pl.Float64),
            "machines": pl.Series([len(one.machines) for one in incidents], dtype=pl.Int64),
            "events": pl.Series([one.events for one in incidents], dtype=pl.Int64),
            "names": pl.Series([", ".join(one.machines) for one in incidents], dtype=pl.String),
            "sensors": pl.Series([", ".join(one.sensors) for one in incidents], dtype=pl.String),
        }
    )


def incident_numbers(incidents: Sequence[FleetIncident]) -> dict[str, list[int]]:
    """The incidents of each machine, by their numbers in the list."""
    numbers: dict[str, list[int]] = {}
    for number, incident in enumerate(incidents, 1):
        for machine in incident.machines:
            numbers.setdefault(machine, []).append(number)
    return numbers


def write_overview(run: FleetRun, out: Path, facts: dict[str, Any], budget: str) -> None:
    """Write overview.csv, incidents.csv, run.json and index.html, each whole."""
    from vace_ad.app.results import RUN, plain, versions, writing

    with writing(str(out)):
        write_frame(overview_frame(run), out / "overview.csv")
        write_frame(incident_frame(run.incidents), out / "incidents.csv")
        write_page(run, out / "index.html", budget, incident_numbers(run.incidents))
        content = plain({**facts, "notes": run.notes, "versions": versions()})
        with whole_file(out / RUN) as draft:
            draft.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
