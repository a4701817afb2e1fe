from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from cli.runs import FAULT, NAMES, QUICK, ROWS, Runner, frame, values
from vace_ad import load
from vace_ad.cli.main import app


@pytest.fixture
def vace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted")
    frame(fault=False).write_parquet(folder / "normal.parquet")
    path = folder / "plant.vace"
    options = ["fit", str(folder / "normal.parquet"), "--model", str(path), *QUICK]
    answer = CliRunner().invoke(app, options)
    assert answer.exit_code == 0, answer.output
    assert "1,500 rows × 4 channels learned" in answer.output
    return path


@pytest.fixture
def model(fitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(fitted, tmp_path))


def test_fit_then_score_finds_the_fault(vace: Runner, model: Path, tmp_path: Path) -> None:
    table = frame().select("time", "power", "flow", "pressure", "speed")  # another order
    table.with_columns(extra=pl.lit(3)).write_csv(tmp_path / "new.csv")
    answer = vace(
        "score", tmp_path / "new.csv", "--model", model, "--out", tmp_path / "r", "--json"
    )
    record = json.loads(answer.out)
    assert any("not in the model are left out: extra" in note for note in record["notes"])
    (event, *_) = [
        e for e in record["events"] if e["start"] < FAULT.stop and e["end"] > FAULT.start
    ]
    assert next(iter(event["shares"])) == "pressure"
    scores = pl.read_parquet(tmp_path / "r" / "scores.parquet")["score"].to_numpy()
    np.testing.assert_array_equal(scores, load(model).score(values()))


def test_scores_to_a_file_and_to_standard_output(vace: Runner, model: Path, tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "new.csv")
    options = ["score", tmp_path / "new.csv", "--model", model]
    assert vace(*options, "--scores", tmp_path / "s.csv").status == 0
    written = pl.read_csv(tmp_path / "s.csv")
    assert written.height == ROWS
    printed = vace(*options, "--scores", "-").out
    assert printed == (tmp_path / "s.csv").read_text()
    answer = vace(*options, "--scores", tmp_path / "s.json")
    assert answer.status == 2
    assert ".parquet, .csv or .xlsx" in answer.err


def test_several_tables(vace: Runner, tmp_path: Path) -> None:
    for seed in (0, 1):
        frame(fault=False)[seed * 700 : seed * 700 + 700].write_csv(tmp_path / f"{seed}.csv")
    answer = vace(
        "fit",
        tmp_path / "0.csv",
        tmp_path / "1.csv",
        "--model",
        tmp_path / "m.vace",
        "--json",
        *QUICK,
    )
    record = json.loads(answer.out)
    assert record["facts"]["rows"] == 1400
    assert record["channels"] == list(NAMES)


def test_inspect(vace: Runner, model: Path) -> None:
    answer = vace("inspect", model)
    assert answer.status == 0
    for words in (
        "4 channels, learned from 1,500 rows",
        "flow, speed",
        "patch_length=16",
        "alarms: about one false alarm a week; limits from",
    ):
        assert words in answer.out
    record = json.loads(vace("inspect", model, "--json").out)
    assert record["config"]["patch_length"] == 16
    assert record["facts"]["rows"] == 1500


def test_exit_status(vace: Runner, model: Path, tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "new.csv")
    options = ["score", tmp_path / "new.csv", "--model", model, "--quiet", "--fail-on-events"]
    assert vace(*options) == (3, "", "")
    assert vace(*options, "--threshold", "1e9") == (0, "", "")


def test_other_channels(vace: Runner, model: Path, tmp_path: Path) -> None:
    frame().drop("flow").write_csv(tmp_path / "new.csv")
    answer = vace("score", tmp_path / "new.csv", "--model", model, "--out", tmp_path / "r")
    assert answer.status == 2
    assert answer.err.startswith("error: the table's channels are not those of the fit")
    assert "missing: 'flow'" in answer.err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("content", [None, b"", b"not a model at all"])
def test_bad_model_files(vace: Runner, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "m.vace"
    if content is not None:
        path.write_bytes(content)
    frame().write_csv(tmp_path / "new.csv")
    for arguments in (["inspect", path], ["score", tmp_path / "new.csv", "--model", path]):
        answer = vace(*arguments)
        assert answer.status == 2
        assert answer.err.startswith("error: ")
        assert answer.err.count("\n") == 1


def test_too_few_rows_and_places_that_do_not_exist(vace: Runner, tmp_path: Path) -> None:
    frame()[:10].write_csv(tmp_path / "t.csv")
    answer = vace("fit", tmp_path / "t.csv", "--model", tmp_path / "m.vace", *QUICK)
    assert answer.status == 2
    assert "rows" in answer.err
    frame().write_csv(tmp_path / "t.csv")
    answer = vace("fit", tmp_path / "t.csv", "--model", tmp_path / "no" / "m.vace", *QUICK)
    assert answer.status == 2
    assert "does not exist" in answer.err


def test_disk_full(vace: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    frame().write_csv(tmp_path / "t.csv")
    monkeypatch.setattr("vace_ad.detector.VACE.save", full)
    answer = vace("fit", tmp_path / "t.csv", "--model", tmp_path / "m.vace", *QUICK)
    assert answer.status == 2
    assert "no space left to write" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("command", ["fit", "update"])
def test_a_model_does_not_overwrite_a_table(
    vace: Runner, model: Path, tmp_path: Path, command: str
) -> None:
    table = tmp_path / "normal.csv"
    frame().write_csv(table)
    before = table.read_bytes()
    given = ["--model", table] if command == "fit" else ["--out", table]
    first = [] if command == "fit" else [model]
    answer = vace(command, *first, table, *given, *(QUICK if command == "fit" else []))
    assert answer.status != 0
    assert "is not a model, so it is not overwritten; give another name" in answer.err
    assert table.read_bytes() == before


def test_results_do_not_replace_the_table_that_is_read(
    vace: Runner, model: Path, tmp_path: Path
) -> None:
    table, out = tmp_path / "table.csv", tmp_path / "out"
    frame().write_csv(table)
    assert vace("score", table, "--model", model, "--out", out).status == 0
    inside = out / "table.csv"
    inside.write_bytes(table.read_bytes())
    answer = vace("score", inside, "--model", model, "--out", out)
    assert answer.status != 0
    assert "which is read, and would be replaced" in answer.err
    answer = vace("score", table, "--model", model, "--scores", table)
    assert answer.status != 0
    assert "is a table that is read" in answer.err
    assert table.read_bytes() == inside.read_bytes()
