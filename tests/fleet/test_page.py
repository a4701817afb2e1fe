"""The overview page: what is listed, what is folded away."""

from __future__ import annotations

from pathlib import Path

from fleet.test_threshold import event
from vace_ad.fleet.entities import MachineRow
from vace_ad.fleet.incidents import find_incidents
from vace_ad.fleet.overview import incident_numbers, overview_frame, write_page
from vace_ad.fleet.runner import FleetRun, ranked


def page(folder: Path, rows: list[MachineRow]) -> str:
    run = FleetRun(ranked(rows), find_incidents(rows))
    write_page(run, folder / "index.html", "3 a week", incident_numbers(run.incidents))
    return (folder / "index.html").read_text()


def machines(quiet: int, loud: int) -> list[MachineRow]:
    rows = [MachineRow(f"quiet{i}", "ok", rows=100) for i in range(quiet)]
    rows += [MachineRow(f"loud{i}", "ok", events=(event(2, 50 * i),)) for i in range(loud)]
    return [*rows, MachineRow("broken", "failed", error="the file ends too early")]


def test_many_quiet_machines_are_folded_away(tmp_path: Path) -> None:
    text = page(tmp_path, machines(4000, 30))
    before, folded = text.split("<details id='quiet'>")
    assert "4,000 machines where nothing was found" in folded
    assert "quiet3999<" in folded
    assert "loud29<" in before
    assert "the file ends too early" in before
    assert "quiet" not in before.split("<tbody>", 1)[1]
    assert "href='#machines'" in before  # past the list of incidents
    assert len(text) < 1_000_000


def test_few_machines_are_one_list(tmp_path: Path) -> None:
    text = page(tmp_path, machines(3, 2))
    assert "<details" not in text
    assert "href='#machines'" not in text
    assert "quiet2<" in text


def test_times_of_an_incident_are_one_span(tmp_path: Path) -> None:
    times = {"start_time": "2026-03-01T08:35:00.000000000+01:00"}
    times["end_time"] = "2026-03-01T09:57:00.000000000+01:00"
    rows = [MachineRow("m", "ok", events=({**event(2), **times},))]
    text = page(tmp_path, rows)
    assert "<td>2026-03-01 08:35 – 09:57 +01:00</td>" in text
    assert ".000" not in text


def test_components_are_a_column_where_a_machine_has_them(tmp_path: Path) -> None:
    assert "components</th>" not in page(tmp_path, machines(1, 1))
    parted = {**event(2), "components": {"pump": 0.7, "<motor>": 0.3}}
    rows = [MachineRow("m", "ok", events=(parted,)), MachineRow("n", "ok", events=(event(3),))]
    text = page(tmp_path, rows)
    assert "<th scope='col'>components</th>" in text
    assert "<td data-label='components'>pump, &lt;motor&gt;</td>" in text
    assert "<td data-label='components'></td>" in text
    overview = overview_frame(FleetRun(ranked(rows), []))
    assert sorted(overview["components"]) == ["", "pump, <motor>"]
