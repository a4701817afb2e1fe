"""Lookout for Equipment: its folders, labels, settings and JSON lines, by its documentation."""

import json
import shlex

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from vace_ad.alarms.budget import Threshold
from vace_ad.alarms.detection import Found
from vace_ad.alarms.events import ANOMALY, CONDITIONS, Event
from vace_ad.app.lookout import off_condition, prediction_lines, read_asset, sampling_rate
from vace_ad.cli.main import app
from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.idle import OFF, Stretch
from vace_ad.frames.table import Table

MODEL = {
    "ModelName": "pump",
    "OffCondition": "motor\\speed < 5.0",
    "DataPreProcessingConfiguration": {"TargetSamplingRate": "PT5M"},
    "TrainingDataEndTime": "2020-01-01T04:00:00+00:00",
}


def sensor_file(place, names, rows, first=0) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(["Timestamp", *names])]
    for i in range(first, first + rows):
        cells = [f"{i % 7 + 10 * k}.5" for k in range(len(names))]
        lines.append(f"2020-01-01 {i // 12:02}:{i % 12 * 5:02}:00," + ",".join(cells))
    place.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path):
    """A component of two files and one of a single sensor, as the user guide lays them out."""
    data = tmp_path / "asset" / "training-data"
    sensor_file(data / "motor" / "a.csv", ["speed", "current"], 40)
    sensor_file(data / "motor" / "b.csv", ["speed", "current"], 40, 40)
    sensor_file(data / "pump" / "flow.csv", ["flow"], 79)
    labels = tmp_path / "asset" / "label-data" / "labels.csv"
    labels.parent.mkdir()
    labels.write_text("2020-01-01T05:00:00.000000,2020-01-01T05:30:00.000000\n")
    (tmp_path / "asset" / "model.json").write_text(json.dumps(MODEL))
    return tmp_path / "asset"


def test_components_labels_and_settings_are_taken_over(folder) -> None:
    asset = read_asset(folder)
    assert asset.frame.columns == ["timestamp", "motor/speed", "motor/current", "pump/flow"]
    assert asset.frame.height == 80
    assert asset.frame["pump/flow"].null_count() == 1  # it has one reading less
    assert asset.frame["motor/current"][41] == 16.5
    (fault,) = asset.faults
    assert fault.start.startswith("2020-01-01T05:00")
    assert asset.options() == {
        "off-when": "`motor/speed` < 5.0",
        "resample": "5min",
        "train-until": "2020-01-01T04:00:00+00:00",
    }


def test_files_side_by_side(tmp_path) -> None:
    sensor_file(tmp_path / "one.csv", ["a"], 20)
    sensor_file(tmp_path / "two.csv", ["b"], 20)
    asset = read_asset(tmp_path)
    assert asset.frame.columns == ["timestamp", "a", "b"]
    assert asset.frame.height == 20
    assert asset.options() == {}


def test_the_command_writes_what_detect_reads(folder, tmp_path) -> None:
    out = tmp_path / "out"
    run = CliRunner().invoke(app, ["import", "lookout", str(folder), "--out", str(out), "--json"])
    assert run.exit_code == 0, run.output
    told = json.loads(run.stdout)
    assert told["labels"] == 1
    assert pl.read_parquet(out / "table.parquet").height == 80
    assert (out / "labels.csv").read_text().count("\n") == 2
    words = shlex.split(told["command"])
    assert words[:3] == ["vace", "detect", str(out / "table.parquet")]
    assert words[words.index("--off-when") + 1] == "`motor/speed` < 5.0"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: (f / "model.json").write_text("no"), "cannot be read as JSON"),
        (lambda f: (f / "model.json").write_text("[]"), "expected is the answer of describe-model"),
        (lambda f: (f / "model.json").write_text('{"OffCondition": "x"}'), "off condition 'x'"),
        (lambda f: sensor_file(f / "training-data" / "pump" / "c.csv", ["flow", "x"], 9), "is in"),
    ],
)
def test_what_cannot_be_taken_over_is_said(folder, change, words) -> None:
    change(folder)
    with pytest.raises((InputError, TableReadError), match=words):
        read_asset(folder)


def test_a_folder_without_data(tmp_path) -> None:
    with pytest.raises(InputError, match="holds no CSV file"):
        read_asset(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        read_asset(tmp_path / "nowhere")
    with pytest.raises(InputError, match="such as PT5M"):
        sampling_rate("5 minutes")


def test_off_conditions() -> None:
    assert off_condition("a b\\c>=0.5") == "`a b/c` >= 0.5"
    assert sampling_rate("PT1H") == "1h"


def test_json_lines() -> None:
    """The keys, reasons and sums that its user guide names."""
    time = np.datetime64("2021-03-11T22:24", "ns") + np.arange(6) * np.timedelta64(1, "m")
    table = Table(np.zeros((6, 2)), ("c/one", "c/two"), time)
    evidence = np.array([np.nan, 0.1, 2.0, 2.0, np.nan, 0.2])
    events = (
        Event(2, 4, 2, ANOMALY, score=1.0, ratio=2.0, severity=72, shares=(("c/two", 0.75),)),
        Event(5, 6, 5, CONDITIONS, score=1.0, ratio=2.0, severity=50, shares=()),
    )
    found = Found(evidence, {}, evidence, evidence, Threshold(1.0, ""), events, (), (),
                  idle=(Stretch(OFF, 0, 1),))  # fmt: skip
    lines = [json.loads(line) for line in prediction_lines(table, found)]
    assert lines[0] == {
        "timestamp": "2021-03-11T22:24:00.000000",
        "prediction": 0,
        "prediction_reason": "MACHINE_OFF",
    }
    assert [line["prediction"] for line in lines] == [0, 0, 1, 1, 0]  # row 4 has no score
    assert lines[2]["prediction_reason"] == "ANOMALY_DETECTED"
    assert lines[2]["anomaly_score"] == 0.72
    assert lines[2]["diagnostics"] == [
        {"name": "c\\one", "value": 0.0},
        {"name": "c\\two", "value": 1.0},
    ]
    assert lines[4]["prediction_reason"] == "NO_ANOMALY_DETECTED"
    assert lines[4]["anomaly_score"] == 0.0
    with pytest.raises(InputError, match="need times"):
        next(prediction_lines(Table(np.zeros((6, 2)), ("c/one", "c/two")), found))
