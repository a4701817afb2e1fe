"""The same tasks on Ray, on this machine."""

import sys
from dataclasses import replace

import pytest

from toys import Here, make_folder
from vace_ad.errors import MissingExtraError
from vace_study.catalog import find_series
from vace_study.cluster import run_ray
from vace_study.runner import Engine, Plan, run
from vace_study.store import read_rows

SECONDS = ("fit_seconds", "score_seconds", "evaluate_seconds", "cpu_seconds")
TIMING = dict.fromkeys((*SECONDS, "peak_memory_mb"))


def test_without_ray_the_install_line_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vace-ad\[ray\]'"):
        next(run_ray([], threads=1))


@pytest.mark.filterwarnings("ignore")  # Ray's own, at start
def test_the_rows_of_ray_are_those_of_this_machine(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed (extra ray)")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    series = find_series(make_folder(tmp_path / "data"))[:2]
    plan = Plan(series, ["toys:Distance"], ("tsb-ad", "test-only"), 2)
    rows = run(plan, tmp_path / "ray", Engine("ray"))
    assert {row.error for row in rows} == {None}
    assert (tmp_path / "ray" / "rows.jsonl").read_bytes().count(b"\n") == len(rows) == 8
    local = run(plan, tmp_path / "local", Here())
    assert [replace(row, **TIMING) for row in rows] == [replace(row, **TIMING) for row in local]
    assert len(read_rows(tmp_path / "ray")) == 8
