"""What an afternoon of attacks found, on the command line."""

from __future__ import annotations

import errno
import gzip
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.runs import NAMES, QUICK, ROWS, Runner, frame


@pytest.fixture
def vace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


def odd_names(path: Path) -> Path:
    faulty = ["=cmd()", "[/]", "temp [degC]", "\x1b[31mred\x1b[0m\u202e"]
    frame().rename(dict(zip(NAMES, faulty, strict=True))).write_parquet(path)
    return path


def test_names_are_text(vace: Runner, tmp_path: Path) -> None:
    answer = vace("detect", odd_names(tmp_path / "t.parquet"), *QUICK)
    assert answer.status == 0, answer.err
    assert "temp [degC]" in answer.out
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out
    answer = vace("detect", tmp_path / "t.parquet", "--columns", "\x1b[31mno", *QUICK)
    assert answer.status == 2
    assert "\x1b" not in answer.err


def test_csv_runs_in_no_spreadsheet(vace: Runner, tmp_path: Path) -> None:
    table = frame().rename({"pressure": "@SUM(A1)"})
    table.write_parquet(tmp_path / "t.parquet")
    answer = vace("detect", tmp_path / "t.parquet", "--out", tmp_path / "r", *QUICK)
    assert "get a ' in front in CSV files" in answer.out
    cells = pl.read_csv(tmp_path / "r" / "events.csv")["channels"].to_list()
    assert any(cell.startswith("'@SUM(A1)") for cell in cells)
    assert not any(re.match(r"[=+\-@]", cell) for cell in cells if cell)


def test_forty_notes_are_one(vace: Runner, tmp_path: Path) -> None:
    still = frame().with_columns(pl.lit(float(i)).alias(f"still{i}") for i in range(40))
    still.write_parquet(tmp_path / "t.parquet")
    answer = vace("detect", tmp_path / "t.parquet", *QUICK)
    assert answer.out.count("columns are constant") == 1
    assert "40 columns are constant" in answer.out


def test_an_unforeseen_error_is_one_sentence(
    vace: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise KeyError("secret\nmore")

    frame().write_csv(tmp_path / "t.csv")
    monkeypatch.setattr("vace_ad.app.loading.load_table", wrong)
    answer = vace("detect", tmp_path / "t.csv")
    assert answer.status == 70
    assert answer.err.startswith("error: something unforeseen went wrong (KeyError: ")
    assert "--debug" in answer.err
    assert answer.err.count("\n") == 1


def test_a_panic_of_a_library_is_one_sentence(
    vace: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("index out of bounds")

    frame().write_csv(tmp_path / "t.csv")
    monkeypatch.setattr("vace_ad.app.loading.load_table", panic)
    assert vace("detect", tmp_path / "t.csv").status == 70


def test_scores_on_a_full_disk_leave_the_earlier_file(
    vace: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame(fault=False).write_csv(tmp_path / "t.csv")
    model, scores = tmp_path / "m.vace", tmp_path / "s.csv"
    assert vace("fit", tmp_path / "t.csv", "--model", model, *QUICK).status == 0
    options = ["score", tmp_path / "t.csv", "--model", model, "--scores", scores]
    assert vace(*options).status == 0
    before = scores.read_bytes()
    true = pl.DataFrame.write_csv

    def full(self: pl.DataFrame, path: Path | None = None, **how: object) -> None:
        assert path is not None
        path.write_bytes(b"half a fi")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    answer = vace(*options)
    monkeypatch.setattr(pl.DataFrame, "write_csv", true)
    assert answer.status == 2
    assert "no space left" in answer.err
    assert scores.read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if "partial" in path.name]


def test_a_link_as_out_is_followed(vace: Runner, tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "t.csv")
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    options = ["detect", tmp_path / "t.csv", "--out", tmp_path / "link", *QUICK]
    assert vace(*options).status == 0
    assert vace(*options).status == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "run.json").is_file()


TABLES = {
    "huge cell": b'a,b\n1,"' + b"x" * 200_000 + b"\n2,3\n",
    "json": b'{"a": [1, 2, 3], "b": {"c": 4}}',
    "cut json": b'[{"a": 1}, {"a": 2',
    "bomb": gzip.compress(b"0,0\n" * 3_000_000),
    "cut parquet": b"PAR1" + b"\x15\x04" * 300 + b"PAR1",
    "zip": b"PK\x03\x04" + b"\0" * 300,
}


@pytest.mark.parametrize("data", TABLES.values(), ids=TABLES.keys())
def test_bad_tables_end_in_one_sentence(vace: Runner, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(data)
    answer = vace("detect", tmp_path / "t.csv", "--max-size", "4MB", "--out", tmp_path / "r")
    assert answer.status == 2
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_two_per_cent_of_rows_missing_cost_no_scores(vace: Runner, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    keep = np.setdiff1d(np.arange(ROWS), rng.choice(np.arange(1, ROWS - 1), ROWS // 50, False))
    frame()[keep].write_csv(tmp_path / "t.csv")
    out = tmp_path / "r"
    vace("detect", tmp_path / "t.csv", "--out", out, *QUICK)
    scores = pl.read_parquet(out / "scores.parquet")
    assert len(scores) == len(keep)
    assert scores["score"].null_count() == 0


def test_local_times_with_their_zone(vace: Runner, tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "t.csv")
    options = ["detect", tmp_path / "t.csv", "--time-zone", "Europe/Berlin", *QUICK]
    answer = vace(*options, "--out", tmp_path / "r")
    assert "2026-01-01 00:00+01:00 to 2026-01-02 00:59+01:00 Europe/Berlin" in answer.out
    record = json.loads(vace(*options, "--json").out)
    assert record["events"][0]["start_time"].endswith("+01:00")
    events = (tmp_path / "r" / "events.csv").read_text()
    assert "+01:00" in events
    scores = pl.read_parquet(tmp_path / "r" / "scores.parquet")
    assert scores.schema["time"] == pl.Datetime("ns", "Europe/Berlin")
