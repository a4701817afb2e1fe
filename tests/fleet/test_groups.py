"""Models for groups of machines, and training rows in another file."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fleet.machines import QUICK, fleet, machine
from fleet.test_runner import job
from vace_ad.detector import load
from vace_ad.errors import ConfigError
from vace_ad.fleet.fleet import Fleet
from vace_ad.fleet.models import FleetModels
from vace_ad.fleet.runner import run_fleet


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four machines at two sites, and one at a third that has few rows."""
    small = machine(7, rows=60).with_columns(machine=pl.lit("m9"))
    site = pl.col("machine").replace_strict(
        {"m0": "north", "m1": "north", "m2": "south", "m3": "south", "m9": "west"}
    )
    path = tmp_path_factory.mktemp("sites") / "fleet.parquet"
    pl.concat([fleet(faulty=(1, 3)), small]).with_columns(site=site).write_parquet(path)
    return path


def test_a_model_for_each_group(sites: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = run_fleet([sites], job(out, by="site,machine"), out, group="site")
    status = {row.machine: row.status for row in run.rows}
    assert status == {
        "north / m0": "ok",
        "north / m1": "ok",
        "south / m2": "ok",
        "south / m3": "ok",
        "west / m9": "borrowed",
    }
    assert {row.machine for row in run.rows[:2]} == {"north / m1", "south / m3"}
    files = {path.name for path in out.glob("*.vace")}
    assert files == {"shared-north.vace", "shared-south.vace", "shared.vace"}
    assert "north: the shared model was learned from 2 machines" in run.notes
    assert "1 machines are of groups with too few rows for a model" in run.notes
    models = [load(out / "machines" / name / "model.vace") for name in _folders(run.rows, "north")]
    rows = {one.facts_["rows"] for one in models}
    assert rows == {load(out / "shared-north.vace").facts_["rows"]}


def _folders(rows, site: str) -> list[str]:
    return [row.folder for row in rows if row.machine.startswith(site)]


def test_models_of_groups_are_kept(sites: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    Fleet(by=["site", "machine"], group="site", **QUICK).fit([sites], folder=models)
    kept, by = FleetModels.read(models)
    assert by == ["site", "machine"]
    files = {name: Path(str(one)).name for name, one in kept.groups.items()}
    # Of west too: all of its rows are to be learned from.
    assert files == {name: f"shared-{name}.vace" for name in ("north", "south", "west")}
    scored = Fleet.load(models).detect([sites], folder=tmp_path / "out")
    status = {row.machine: row.status for row in scored.rows}
    assert status["west / m9"] == "ok"
    assert status["south / m3"] == "ok"


@pytest.mark.parametrize("by", ["machine", "site"])
def test_a_group_is_one_of_several_keys(sites: Path, tmp_path: Path, by: str) -> None:
    with pytest.raises(ConfigError, match=r"group='site': must be .* by='site,machine'"):
        run_fleet([sites], job(tmp_path / "o", by=by), tmp_path / "o", group="site")
    assert not (tmp_path / "o").exists()


def test_training_rows_in_another_file(tmp_path: Path) -> None:
    fleet(3, faulty=()).write_parquet(tmp_path / "normal.parquet")
    new = fleet(4, faulty=(1,))
    new.write_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out"
    run = run_fleet([tmp_path / "new.parquet"], job(out), out, train=tmp_path / "normal.parquet")
    status = {row.machine: row.status for row in run.rows}
    assert status == {"m0": "ok", "m1": "ok", "m2": "ok", "m3": "borrowed"}
    assert run.rows[0].machine == "m1"
    rows = {name: load(out / "machines" / name / "model.vace").facts_["rows"] for name in status}
    normal = pl.read_parquet(tmp_path / "normal.parquet")["machine"].value_counts()["count"][0]
    assert rows["m0"] == normal
    assert rows["m3"] == 3 * normal  # the shared model
    assert not (out / ".normal").exists()
    with pytest.raises(ConfigError, match="other settings or other data"):
        run_fleet([tmp_path / "new.parquet"], job(out), out)
