from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.runs import QUICK, ROWS, Runner, frame
from fleet.machines import fleet, machine
from vace_ad import load


@pytest.fixture
def vace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    fleet(faulty=(1, 3)).write_csv(tmp_path / "fleet.csv")
    return tmp_path / "fleet.csv"


def test_detect_by_machine(vace: Runner, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--by", "machine", "--budget", "3 per week", *QUICK]
    answer = vace("detect", table, *options, "--out", out)
    assert answer.status == 0, answer.err
    assert "on 2 of 4 machines" in answer.out
    assert "3 false alarms a week over all machines" in answer.out
    overview = pl.read_csv(out / "overview.csv")
    assert set(overview["machine"][:2]) == {"m1", "m3"}
    incidents = pl.read_csv(out / "incidents.csv")
    assert incidents["machines"].max() == 2
    page = (out / "index.html").read_text()
    for link in re.findall(r"href='(machines/[^']+)'", page):
        assert (out / link).is_file()
    again = vace("detect", table, *options, "--out", out, "--json")
    record = json.loads(again.out)
    assert [one["machine"] for one in record["machines"][:2]] == overview["machine"][:2].to_list()
    quiet = vace("detect", table, *options, "--fail-on-events", "--quiet")
    assert quiet == (3, "", "")


def test_fit_then_score(vace: Runner, table: Path, tmp_path: Path) -> None:
    fleet(faulty=()).write_parquet(tmp_path / "normal.parquet")
    models = tmp_path / "models"
    fit = ["fit", tmp_path / "normal.parquet", "--by", "machine", "--models", models, *QUICK]
    answer = vace(*fit)
    assert answer.status == 0, answer.err
    assert "models of 4 machines" in answer.out
    new = pl.concat(
        [
            pl.read_csv(table, try_parse_dates=True).with_columns(
                pl.col("time").cast(pl.Datetime("ns"))
            ),
            machine(9).with_columns(machine=pl.lit("new")),
        ]
    )
    new.write_parquet(tmp_path / "new.parquet")
    score = ["score", tmp_path / "new.parquet", "--by", "machine", "--models", models]
    record = json.loads(vace(*score, "--json").out)
    assert {one["machine"] for one in record["machines"][:3]} >= {"m1", "m3"}
    status = {one["machine"]: one["status"] for one in record["machines"]}
    assert status["new"] == "borrowed"
    assert status["m0"] == "ok"


def test_groups_and_a_training_file(vace: Runner, table: Path, tmp_path: Path) -> None:
    for name, faulty in (("normal", ()), ("new", (1, 3))):
        site = pl.col("machine").replace_strict(
            {"m0": "north", "m1": "north", "m2": "south", "m3": "south"}
        )
        fleet(faulty=faulty).with_columns(site=site).write_parquet(tmp_path / f"{name}.parquet")
    normal, new = tmp_path / "normal.parquet", tmp_path / "new.parquet"
    options = ["--by", "site,machine", "--group", "site", *QUICK, "--json"]
    answer = vace("detect", new, "--train-file", normal, *options)
    assert answer.status == 0, answer.err
    record = json.loads(answer.out)
    assert {one["machine"] for one in record["machines"][:2]} == {"north / m1", "south / m3"}
    assert "south: the shared model was learned from 2 machines" in record["notes"]
    models = tmp_path / "models"
    assert vace("fit", normal, "--models", models, *options).status == 0
    assert (models / "shared-south.vace").is_file()
    score = ["score", new, "--by", "site,machine", "--models", models, "--json"]
    scored = json.loads(vace(*score).out)
    assert {one["status"] for one in scored["machines"]} == {"ok"}
    assert {one["machine"] for one in scored["machines"][:2]} == {"north / m1", "south / m3"}


BAD = {
    "no such column": (["--by", "pump"], "no column is called 'pump'"),
    "shared alone": (["--shared"], "--shared needs --by"),
    "train file": (["--by", "machine", "--train-file", "x.csv"], "x.csv does not exist"),
    "two ways to train": (
        ["--by", "machine", "--train-file", "x.csv", "--train-rows", "9"],
        "--train-rows and --train-file cannot be combined",
    ),
    "group": (["--by", "machine", "--group", "site"], "--group site: must be"),
    "group without by": (["--group", "site"], "--group needs --by"),
    "shared and group": (["--by", "a,b", "--group", "a", "--shared"], "--shared and --group"),
}


@pytest.mark.parametrize(("options", "expected"), BAD.values(), ids=BAD.keys())
def test_bad_options(vace: Runner, table: Path, options: list[str], expected: str) -> None:
    answer = vace("detect", table, *options, *QUICK)
    assert answer.status == 2
    assert expected in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "no model was named"),
        (["--by", "machine"], "--by needs --models"),
        (["--models", "m"], "--models needs --by"),
        (["--by", "machine", "--model", "m.vace", "--models", "m"], "give one of them"),
    ],
)
def test_which_model(vace: Runner, table: Path, options: list[str], expected: str) -> None:
    for command in ("fit", "score"):
        answer = vace(command, table, *options)
        assert answer.status == 2
        assert expected in answer.err


def test_hostile_names_on_the_page(vace: Runner, tmp_path: Path) -> None:
    name = "</script><img src=x onerror=alert(1)>'\""
    odd = fleet(2).with_columns(machine=pl.col("machine").replace({"m1": name}))
    odd.write_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out"
    options = ["--by", "machine", *QUICK]
    assert vace("detect", tmp_path / "t.parquet", *options, "--out", out).status == 0
    page = (out / "index.html").read_text()
    assert "<img" not in page
    assert "default-src 'none'" in page


def test_each_machine_learns_where_a_condition_holds(vace: Runner, tmp_path: Path) -> None:
    state = pl.Series("state", np.where(np.arange(ROWS) % 100 < 20, "stop", "run"))
    machines = [frame(seed).with_columns(state, machine=pl.lit(f"m{seed}")) for seed in (0, 1)]
    pl.concat(machines).write_csv(tmp_path / "t.csv")
    answer = vace(
        *("detect", tmp_path / "t.csv", "--by", "machine", "--where", "state == 'run'"),
        *("--out", tmp_path / "out", *QUICK),
    )
    assert answer.status == 0, answer.err
    learned = [load(path).facts_["rows"] for path in (tmp_path / "out").rglob("*.vace")]
    assert learned == [450 - 100, 450 - 100]
