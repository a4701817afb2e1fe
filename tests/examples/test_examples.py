from __future__ import annotations

import json
import re
import runpy
from contextlib import suppress
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    with suppress(SystemExit):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "operated_plant.py",
        "pandas_notebook.py",
        "sklearn_pipeline.py",
        "service_metrics.py",
    }


def test_pandas_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    out = run("pandas_notebook.py", capsys)
    assert "severity" in out
    assert "broken correlation   pump_current" in out


def test_sklearn_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run("sklearn_pipeline.py", capsys).splitlines()
    assert len(lines) == 2
    assert all(float(line.split("VUS-PR ")[1][:4]) > 0.4 for line in lines)


def test_service_metrics_pages_for_the_leaking_pool(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [json.loads(line) for line in run("service_metrics.py", capsys).splitlines()]
    assert any(page["suspects"][:1] == ["db_connections"] for page in pages)


def test_expected_changes_do_not_alarm_and_faults_do(capsys: pytest.CaptureFixture[str]) -> None:
    out = run("operated_plant.py", capsys)
    (false_alarms,) = re.findall(r"4 of 4 faults found, (\d+) false alarms", out)
    assert int(false_alarms) <= 3  # in eight weeks, at one a week
    for fault, sensor in {
        "filter clogs": "filter_pressure",
        "bearing wears": "vibration",
        "sensor drifts": "motor_temperature",
        "valve sticks": "cooling_valve",
    }.items():
        assert f"{fault}: first suspect {sensor}" in out
    assert "conditions outside training" in out
    assert "ambient" in out
