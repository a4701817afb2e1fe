"""The scripts behind the published figures: that they run at all, and that they sum up rightly."""

import csv
import importlib
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


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(script):
    assert "usage:" in run(script, "--help")


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
    whole = [line for line in lines if line["group"] == "all"]
    for line, mine in zip(whole, (lines[0:4:2], lines[1:4:2]), strict=True):
        assert int(line["false_alarms"]) == sum(int(one["false_alarms"]) for one in mine)
    assert 0 <= float(whole[0]["rows_in_events"]) < 0.05


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
