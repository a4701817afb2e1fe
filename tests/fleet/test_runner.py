from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from fleet.machines import QUICK, fleet, machine
from vace_ad.alarms import Budget
from vace_ad.app.run import Alarming
from vace_ad.config import VACEConfig
from vace_ad.errors import ConfigError, InputError
from vace_ad.executors.store import read_lines
from vace_ad.fleet import runner
from vace_ad.fleet.entities import MachineRow, find_entities, folder_name
from vace_ad.fleet.executor import Executor
from vace_ad.fleet.runner import per_machine, run_fleet
from vace_ad.fleet.task import Job
from vace_ad.frames.read_options import ReadOptions

CONFIG = VACEConfig.from_preset(None, **QUICK)


def job(out: Path, **how: object) -> Job:
    reading = ReadOptions(**{"by": "machine", **how})  # type: ignore[arg-type]
    alarming = Alarming(Budget(4, "week"))
    return Job(reading, CONFIG, alarming)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "fleet.parquet"
    fleet().write_parquet(path)
    return path


@pytest.fixture(scope="module")
def whole(table: Path) -> list[MachineRow]:
    """What one run in memory, without a break, says of the table."""
    return run_fleet([table], job(table.parent)).rows


def signature(rows: list[MachineRow]) -> list[tuple[object, ...]]:
    return sorted((row.machine, row.status, str(row.events), row.threshold) for row in rows)


def test_the_budget_is_divided() -> None:
    assert per_machine(Budget(3, "week"), 1000) == Budget(0.003, "week")
    assert per_machine(Budget(0.01, "share"), 10) == Budget(0.01, "share")


def test_a_run_its_results_and_the_same_again(
    table: Path, whole: list[MachineRow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_fleet([table], job(tmp_path), tmp_path)
    assert run.rows[0].machine == "m1"
    assert {row.status for row in run.rows} == {"ok"}
    names = {path.name for path in (tmp_path / "machines" / "m1").iterdir()}
    assert names == {"scores.parquet", "events.csv", "model.vace", "run.json", "report.html"}
    assert not (tmp_path / ".parts").exists()
    monkeypatch.setattr(Executor, "run", lambda *_: pytest.fail("nothing was left to do"))
    again = run_fleet([table], job(tmp_path), tmp_path)
    assert again.rows == run.rows
    assert signature(run.rows) == signature(whole)
    with pytest.raises(ConfigError, match="other settings"):
        run_fleet([table], job(tmp_path, sort=True), tmp_path)


def test_jobs_give_the_same_rows(table: Path, whole: list[MachineRow]) -> None:
    two = run_fleet([table], job(table.parent), executor=Executor(jobs=2))
    assert signature(two.rows) == signature(whole)


KILLED = """
import sys
from pathlib import Path
from fleet.test_runner import job
from vace_ad.fleet.runner import run_fleet
if __name__ == "__main__":
    out = Path(sys.argv[2])
    run_fleet([sys.argv[1]], job(out), out)
"""


def test_killed_and_resumed(table: Path, whole: list[MachineRow], tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = tmp_path / "run.py"
    script.write_text(KILLED)
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, script, table, out], env={**os.environ, "PYTHONPATH": paths}
    )
    deadline = time.monotonic() + 60
    while not read_lines(out, MachineRow.from_json) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = read_lines(out, MachineRow.from_json)
    assert kept
    assert len(kept) < 4
    resumed = run_fleet([table], job(out), out)
    assert all(row in resumed.rows for row in kept)
    assert signature(resumed.rows) == signature(whole)


def test_files_named_by_their_paths_need_no_sorting(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"machine=m{i}").mkdir()
        machine(i).write_csv(tmp_path / f"machine=m{i}" / "a.csv")
    for places in ([tmp_path], [f"{tmp_path}/machine={{machine}}/a.csv"]):
        entities, _ = find_entities(places, ReadOptions(by="machine"), tmp_path / "parts")
        assert [one.name for one in entities] == ["m0", "m1", "m2"]
        assert not any(one.sorted for one in entities)
    files, _ = find_entities(
        [tmp_path / f"machine=m{i}" / "a.csv" for i in range(3)],
        ReadOptions(by="file"),
        tmp_path / "p",
    )
    assert len(files) == 3


def test_one_machine_in_several_files(tmp_path: Path) -> None:
    whole = fleet(2)
    whole[:900].write_csv(tmp_path / "b.csv")
    whole[900:].write_csv(tmp_path / "a.csv")
    out = tmp_path / "out"
    places = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert {row.rows for row in run_fleet(places, job(out), out).rows} == {900}
    whole[800:].write_csv(tmp_path / "a.csv")
    run = run_fleet(places, job(tmp_path / "o2"), tmp_path / "o2")
    assert {row.status for row in run.rows} == {"failed"}
    assert "b.csv and " in (run.rows[0].error or "")
    assert "cover the same time" in (run.rows[0].error or "")


def test_pieces_of_a_large_file(
    table: Path, whole: list[MachineRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vace_ad.fleet.entities._PIECE", 5 * 777)
    pieces = run_fleet([table], job(table.parent))
    assert signature(pieces.rows) == signature(whole)


def test_bad_machines_are_rows(tmp_path: Path) -> None:
    odd = pl.concat(
        [
            fleet(2),
            machine(5, rows=60).with_columns(machine=pl.lit("short")),
            machine(6, rows=1).with_columns(machine=pl.lit("one row")),
            machine(7)[::-1].with_columns(machine=pl.lit("../../backwards")),
            machine(8).head(5).with_columns(machine=pl.lit(None, dtype=pl.String)),
        ]
    )
    odd.write_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out"
    run = run_fleet([tmp_path / "t.parquet"], job(out), out)
    status = {row.machine: row.status for row in run.rows}
    assert status == {
        "m0": "ok",
        "m1": "ok",
        "short": "borrowed",
        "one row": "short",
        "../../backwards": "failed",
    }
    assert "5 rows left out: they name no machine" in run.notes
    error = next(row.error for row in run.rows if row.status == "failed")
    assert "newest row comes first" in (error or "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "t.parquet"]


def test_what_is_no_key(tmp_path: Path) -> None:
    pl.DataFrame({"serial": range(100_000), "a": 0.5}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="'serial' has 100,000 different values"):
        run_fleet([tmp_path / "t.parquet"], job(tmp_path / "o", by="serial"), tmp_path / "o")
    assert not list((tmp_path / "o" / ".parts").glob("*"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="holds other files"):
        run_fleet([tmp_path / "t.parquet"], job(tmp_path), tmp_path / "mine")


def test_a_long_table_of_machines(tmp_path: Path) -> None:
    long = fleet(2).unpivot(index=["time", "machine"], variable_name="sensor", value_name="value")
    long.write_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out"
    run = run_fleet([tmp_path / "t.parquet"], job(out, long="sensor,value"), out)
    assert {(row.status, row.channels) for row in run.rows} == {("ok", 3)}
    bad = run_fleet([tmp_path / "t.parquet"], job(tmp_path / "bad"), tmp_path / "bad")
    assert all("long='sensor,value'" in (row.error or "") for row in bad.rows)


def test_names_of_folders() -> None:
    assert folder_name("pump-4_a") == "pump-4_a"
    odd = ["../x", "a/b", "a b", "a_b", "", ".", "..", "x" * 300, "shared", "ä", "a\0b"]
    names = [folder_name(name) for name in odd]
    assert len(set(names)) == len(odd)
    assert all("/" not in name and not name.startswith(".") and len(name) < 80 for name in names)


def test_an_engine_needs_a_job() -> None:
    with pytest.raises(ConfigError, match="jobs=0"):
        Executor(jobs=0).run([])


def test_of_a_large_fleet_those_with_events_get_a_report(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "REPORTS", 3)
    run = run_fleet([table], job(tmp_path), tmp_path)
    reports = {path.parent.name for path in tmp_path.glob("machines/*/report.html")}
    assert reports == {row.folder for row in run.rows if row.events}
    assert "m1" in reports
    assert len(reports) < 4
    page = tmp_path / "machines" / "m1" / "report.html"
    stored = json.loads((page.parent / "run.json").read_text())
    assert all(note in page.read_text() for note in stored["notes"] if "'" not in note)
    page.unlink()  # as a kill between the two leaves it
    again = run_fleet([table], job(tmp_path), tmp_path)
    assert page.is_file()
    assert again.rows == run.rows


def test_a_report_that_cannot_be_written_is_said(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "REPORTS", 3)
    run_fleet([table], job(tmp_path), tmp_path)
    folder = tmp_path / "machines" / "m1"
    (folder / "report.html").unlink()
    (folder / "model.vace").write_bytes(b"broken")
    notes = run_fleet([table], job(tmp_path), tmp_path).notes
    assert any("1 machines with events have no report; of 'm1'" in note for note in notes)


def test_all_machines_of_a_large_fleet_keep_one_budget(tmp_path: Path) -> None:
    """Of 36 machines the one with a fault alarms; each alone would know too little."""
    fleet(36, (5,)).write_parquet(tmp_path / "t.parquet")
    usual = VACEConfig.from_preset(None, patch_length=16, encoders=1)
    given = replace(job(tmp_path), config=usual, alarming=Alarming(Budget(0.5, "week")))
    run = run_fleet([tmp_path / "t.parquet"], given)
    assert [row.machine for row in run.rows if row.anomalies] == ["m5"]
    assert any("36 machines have too few training rows" in note for note in run.notes)
    assert all(row.peaks for row in run.rows)
