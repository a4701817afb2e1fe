from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from vace_ad.cli.evaluate import evaluate_command
from vace_ad.errors import InputError, TableReadError
from vace_ad.metrics import evaluate, operational

app = typer.Typer()
app.command()(evaluate_command)


@pytest.fixture
def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    rows = np.arange(1000)
    labels = ((rows > 400) & (rows < 420) | (rows > 800) & (rows < 803)).astype(int)
    return pl.DataFrame(
        {
            "row": rows,
            "pressure": np.sin(rows * 2 * np.pi / 40),
            "flow": np.sin(rows * 2 * np.pi / 25),
            "note": ["-"] * 1000,
            "label": labels,
            "score": np.abs(rng.normal(size=1000)) + 2 * labels,
        }
    )


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception:
        raise result.exception
    return result.output


def run_json(*arguments: object) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return loaded


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_file_kinds(tmp_path: Path, table: pl.DataFrame, suffix: str) -> None:
    path = tmp_path / f"scores{suffix}"
    if suffix == ".parquet":
        table.write_parquet(path)
    else:
        table.write_csv(path, compression="gzip" if suffix == ".csv.gz" else "uncompressed")
    result = run_json(path)
    assert result["rows"] == 1000
    assert (result["window"], result["window_from"]) == (100, "given")
    assert result["measures"] == pytest.approx(evaluate(table["label"], table["score"]))
    assert result["operation"] is None


@pytest.fixture
def path(tmp_path: Path, table: pl.DataFrame) -> Path:
    target = tmp_path / "scores.parquet"
    table.write_parquet(target)
    return target


def test_table_for_people(path: Path) -> None:
    output = run(path, "--threshold", 2.5, "--step-seconds", 60)
    for words in ["VUS-PR", "Affiliation-F", "1,000 rows", "score above 2.5", "events found"]:
        assert words in output
    assert "false alarms a day" in output
    assert "median delay" in output
    assert "in operation" not in run(path)


def test_threshold_makes_predictions(path: Path, table: pl.DataFrame) -> None:
    result = run_json(path, "--threshold", 2.5, "--step-seconds", 60, "--window", 7)
    labels, scores = table["label"].to_numpy(), table["score"].to_numpy()
    assert result["measures"] == pytest.approx(evaluate(labels, scores, 7, scores > 2.5))
    expected = operational(labels, scores > 2.5, 60)
    assert result["operation"]["false_alarms_per_day"] == expected.false_alarms_per_day
    assert tuple(result["operation"]["delays"]) == expected.delays


def test_prediction_column(tmp_path: Path, table: pl.DataFrame) -> None:
    path = tmp_path / "scores.csv"
    table.with_columns(alarm=pl.col("score") > 2.5).write_csv(path)
    by_column = run_json(path, "--prediction-column", "alarm")
    assert by_column["measures"] == run_json(path, "--threshold", 2.5)["measures"]


def test_columns_by_name(tmp_path: Path, table: pl.DataFrame) -> None:
    path = tmp_path / "scores.csv"
    table.rename({"label": "fault", "score": "vace"}).write_csv(path)
    result = run_json(path, "--label-column", "fault", "--score-column", "vace")
    assert result["measures"] == pytest.approx(evaluate(table["label"], table["score"]))


def test_window_auto(path: Path) -> None:
    result = run_json(path, "--window", "auto")  # the row number is no channel
    assert (result["window"], result["window_from"]) == (40, "period of 'pressure'")
    assert run_json(path, "--window", "auto", "--series-column", "flow")["window"] == 25


def test_labels_that_become_floats_late(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    rows = [f"{i % 7 == 0:d},{i}" for i in range(5000)]
    path.write_text("\n".join(["label,score", *rows, "1.0,0.5"]))
    assert run_json(path)["rows"] == 5001


def test_missing_scores(tmp_path: Path, table: pl.DataFrame) -> None:
    path = tmp_path / "scores.csv"
    table.with_columns(
        score=pl.when(pl.col("row") < 5).then(None).when(pl.col("row") > 997).then(np.nan)
        .otherwise(pl.col("score"))
    ).write_csv(path)  # fmt: skip
    with pytest.raises(InputError, match="nan at row 0"):
        run(path)
    assert run_json(path, "--drop-missing")["rows"] == 993


def test_json_has_no_nan(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("label,score\n0,1\n1,1\n")
    assert run_json(path)["measures"]["Affiliation-F"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label-column", "fault"], "no column 'fault'; the table has 'row', 'pressure'"),
        (["--window", "auto", "--series-column", "level"], "no column 'level'"),
        (["--window", "auto", "--series-column", "note"], "'note' is of type String"),
        (["--score-column", "note"], "'note' is of type String"),
        (["--label-column", "row"], "labels hold 2 at row 2"),
        (["--window=-3"], "--window is '-3'; expected 'auto' or a whole number"),
        (["--window", "wide"], "--window is 'wide'"),
        (["--window", "9", "--series-column", "flow"], "only with auto"),
        (["--threshold", "1", "--prediction-column", "row"], "cannot be combined"),
        (["--step-seconds", "1"], "needs predictions"),
    ],
)
def test_bad_use(path: Path, arguments: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(path, *arguments)


def test_auto_without_a_channel(tmp_path: Path, table: pl.DataFrame) -> None:
    path = tmp_path / "scores.csv"
    table.select("row", "note", "label", "score").write_csv(path)
    with pytest.raises(InputError, match="found no numeric column"):
        run(path, "--window", "auto")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.csv", "does not exist"),
        ("cut.parquet", "begins like Parquet but cannot be read"),
        ("empty.csv", r"empty\.csv is empty; give"),
    ],
)
def test_unreadable(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "cut.parquet").write_text("PAR1 and no more")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(TableReadError, match=words):
        run(tmp_path / name)
