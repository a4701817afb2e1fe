"""The scripts behind the published figures: that they run at all, and that they sum up rightly."""

import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(
    path.stem for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text()
)


def run(script, *arguments):
    command = [sys.executable, FOLDER / f"{script}.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# All in one process: most of a script's time goes into what they all import.
HELP = """
import runpy, sys
folder, *scripts = sys.argv[1:]
sys.path.insert(0, folder)
for script in scripts:
    sys.argv = [script, "--help"]
    try:
        runpy.run_path(f"{folder}/{script}.py", run_name="__main__")
    except SystemExit as end:
        assert not end.code, script
"""


def test_every_script_has_help():
    command = [sys.executable, "-c", HELP, str(FOLDER), *SCRIPTS]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [f"usage: {script}.py " in told for script in SCRIPTS] == [True] * len(SCRIPTS)


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_single_bad_readings_are_found_among_made_faults(tmp_path):
    run("faults", "--seeds", 1, "--faults", "single bad readings", "--out", tmp_path)
    (line,) = read(tmp_path / "faults.csv")
    assert float(line["default"]) > 0.7


def test_budgets_are_counted_on_clean_processes(tmp_path):
    run("budgets", "--quick", "--kinds", "white noise", "t3", "--out", tmp_path)
    lines = read(tmp_path / "budgets.csv")
    assert [line["kind"] for line in lines[:4]] == ["white noise"] * 2 + ["t3"] * 2
    assert [line["allowed"] for line in lines[:2]] == ["3.0", "0.3"]
    assert [line["at_most"] for line in lines[:2]] == ["10", "3"]
    assert {line["seeds"] for line in lines[:4]} == {"1"}
    whole = [line for line in lines if line["group"] == "all"]
    for line, mine in zip(whole, (lines[0:4:2], lines[1:4:2]), strict=True):
        assert int(line["false_alarms"]) == sum(int(one["false_alarms"]) for one in mine)
    assert 0 <= float(whole[0]["rows_in_events"]) < 0.05


def test_a_level_is_found_and_dated(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    onsets = importlib.import_module("onsets")
    for name, rows in {"TRAIN": 1_000, "TEST": 600, "ONSET": 300}.items():
        monkeypatch.setattr(onsets, name, rows)
    right, start, alarm = onsets.trial("level off by three deviations", 0.0, seed=0)
    assert right
    assert start <= alarm <= 20


def test_clean_processes_are_clean(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    kinds = importlib.import_module("processes").KINDS
    assert len({kind.name for kind in kinds}) == 49
    for kind in kinds:
        first, again = (kind.rows(4000, np.random.default_rng(3)) for _ in range(2))
        assert first.shape == (4000, 4), kind.name
        np.testing.assert_array_equal(first, again)
        assert np.isfinite(first).all() or kind.name.startswith("missing"), kind.name
        assert (np.nanstd(first, axis=0) > 0).all(), kind.name


def test_an_alarm_must_lie_on_what_it_finds(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    judging = importlib.import_module("judging")
    labels = np.zeros(2000, int)
    labels[500:600] = labels[1500:1510] = 1
    endless = judging.judge([(0, 2000)], labels)  # 206 + 106 of 2,000 rows are near
    assert (endless.found, endless.false_alarms) == (0, 1)
    found = judging.judge([(520, 580), (900, 910)], labels)
    assert (found.events, found.found, found.false_alarms) == (2, 1, 1)
    assert (found.onsets, found.overlaps) == ((20,), (0.6, 0.0))
    assert (found.inside_rows, found.normal_rows) == (10, 2000 - 196 - 106)
    both = (found + endless).line()
    assert (both["series"], both["found"], both["overlap"]) == (2, 1, "0.15")


def test_a_plain_chart_finds_a_shift_and_names_its_channel(monkeypatch):
    pytest.importorskip("vace_study")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "alarms", raising=False)  # the tests' own folder
    charts = importlib.import_module("chart_alarms").CHARTS
    sys.modules.pop("alarms")
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(3000, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(3000, 5))
    mixed[2500:2600, 3] += 15
    for name, detect in charts.items():
        alarms = detect(mixed[:2000], mixed[2000:])
        found = [alarm for alarm in alarms if alarm.start < 600 and alarm.end > 500]
        assert found, name
        assert found[0].suspects[0] == 3, name
        assert len(alarms) <= 2, name


def test_scores_of_another_processor_stand_beside_those_that_were_kept(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    processor = importlib.import_module("processor")
    kept = json.loads(processor.golden.FILE.read_text())["synthetic shape"]
    level = [kept["level"][0] + 1e-3 * (1 + abs(kept["level"][0])), *kept["level"][1:]]
    about = {"processor": "aarch64", "python": "3.11", "numpy": "2.4"}
    scores = {**kept, "level": level}
    lines = processor.compared({"case": "synthetic shape", "scores": scores, **about})
    assert [line["line"] for line in lines] == list(kept)
    found = {line["line"]: line for line in lines}
    assert found["level"]["largest_difference"] == "1.0e-03"
    assert found["level"]["tolerance"] == 1e-9
    assert found["position"]["largest_difference"] == "0.0e+00"
    assert found["position"]["tolerance"] == 2e-6
