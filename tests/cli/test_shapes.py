"""Shapes and sources of tables on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from cli.runs import FAULT, NAMES, QUICK, Runner, frame


@pytest.fixture
def vace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


def finds_the_fault(answer: tuple[int, str, str]) -> bool:
    record = json.loads(answer[1])
    assert set(record["input"]["channels"]) == set(NAMES)
    return any(e["start"] < FAULT.stop and e["end"] > FAULT.start for e in record["events"])


def test_long_tables(vace: Runner, tmp_path: Path) -> None:
    long = frame().unpivot(index="time", variable_name="sensor", value_name="value")
    long.write_csv(tmp_path / "long.csv")
    answer = vace("detect", tmp_path / "long.csv", *QUICK)
    assert answer.status == 2
    assert answer.err.endswith("read it with --long sensor,value\n")
    options = ["--long", "sensor,value", "--json"]
    assert finds_the_fault(vace("detect", tmp_path / "long.csv", *options, *QUICK))


def test_keyed_tables(vace: Runner, tmp_path: Path) -> None:
    machines = [frame(seed).with_columns(machine=pl.lit(f"m{seed}")) for seed in range(3)]
    pl.concat(machines).sort("time").write_csv(tmp_path / "keyed.csv")
    for options in ([], ["--sort"]):
        answer = vace("detect", tmp_path / "keyed.csv", *options, *QUICK)
        assert answer.status == 2
        assert answer.err.endswith("read it with --by machine\n")


def test_several_files_a_folder_and_a_glob(vace: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    frame()[:700].write_csv(folder / "9.csv")
    frame()[700:].write_parquet(folder / "10.parquet")
    options = ["--json", *QUICK]
    answers = [
        vace("detect", folder / "9.csv", folder / "10.parquet", *options),
        vace("detect", folder, *options),
        vace("detect", f"{folder}/*", *options),
    ]
    assert all(map(finds_the_fault, answers))
    events = [json.loads(answer.out)["events"] for answer in answers]
    assert events[0] == events[1] == events[2]


def test_a_folder_without_tables(vace: Runner, tmp_path: Path) -> None:
    answer = vace("detect", tmp_path, "--out", tmp_path / "r")
    assert answer.status == 2
    assert "folder without a table" in answer.err


def test_a_fit_on_machines_by_path_asks_for_by(vace: Runner, tmp_path: Path) -> None:
    for machine in ("a", "b"):
        (tmp_path / f"machine={machine}").mkdir()
        frame().write_parquet(tmp_path / f"machine={machine}" / "t.parquet")
    answer = vace("fit", tmp_path, "--model", tmp_path / "m.vace", *QUICK)
    assert answer.status == 2
    assert "--by machine" in answer.err
