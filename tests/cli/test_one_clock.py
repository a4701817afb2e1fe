"""A time is shown in one zone, the user's, with its offset, over a change of clocks too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.runs import QUICK, Runner
from vace_ad import VACE

N, ZONE = 1700, "Europe/Berlin"
START = np.datetime64("2026-10-15T00:00", "ns")  # UTC; clocks go back on the 25th
FAULT = 10 * 144 + 9 * 6  # 09:00 UTC, 10:00 in Berlin, 11:00 had clocks not changed


@pytest.fixture
def vace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    x = np.sin(np.arange(N)[:, None] / [5, 9, 7]) + 0.1 * rng.normal(size=(N, 3))
    x[FAULT : FAULT + 30, 1] += 8
    time = pl.Series("time", START + np.arange(N) * np.timedelta64(600, "s"))
    local = time.dt.replace_time_zone("UTC").dt.convert_time_zone(ZONE)
    return pl.DataFrame(x, schema=["a", "b", "c"]).insert_column(0, local)


def test_every_output_says_the_same(vace: Runner, table: pl.DataFrame, tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "r"
    table.with_columns(pl.col("time").dt.replace_time_zone(None)).write_csv(path)
    options = ["detect", path, "--time-zone", ZONE, "--train-rows", "1000", *QUICK]
    answer = vace(*options, "--out", out)
    assert answer.status == 0, answer.err
    assert "2026-10-25 10:00+01:00" in answer.out
    assert "2026-10-15 02:00+02:00 to" in answer.out
    event = json.loads((out / "run.json").read_text())["events"][0]
    assert event["start_time"] == "2026-10-25T10:00:00+01:00"
    assert event["alarm_time"].endswith("+01:00")
    assert event["alarm_time"] >= event["start_time"]
    events = pl.read_csv(out / "events.csv").row(0, named=True)
    assert events["start_time"] == "2026-10-25T10:00:00+01:00"
    assert events["alarm_time"] == event["alarm_time"]
    page = (out / "report.html").read_text()
    assert "25 Oct 2026 10:00+01:00" in page
    assert "25 Oct 2026 11:00" not in page
    assert "15 Oct 2026 02:00+02:00" in page


def test_python_says_it_too(table: pl.DataFrame, tmp_path: Path) -> None:
    for data in (table, table.to_pandas().set_index("time")):
        detector = VACE(patch_length=16, encoders=1).fit(data[:1000])
        found = detector.detect(data, first=1000)
        assert "2026-10-25 10:00+01:00" in repr(found)
        assert "2026-10-25 10:00+01:00" in found._repr_html_()
        assert str(found.to_frame()["start_time"][0]).startswith("2026-10-25 10:00:00+01:00")
        found.report(tmp_path / "r.html", first=1000)
        assert "25 Oct 2026 10:00+01:00" in (tmp_path / "r.html").read_text()


def test_options_take_times_in_the_zone(vace: Runner, table: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table.write_parquet(path)
    for until in ("2026-10-22", "2026-10-21T22:00Z", "2026-10-22 00:00+02:00"):
        answer = vace("detect", path, "--train-until", until, "--json", *QUICK)
        assert json.loads(answer.out)["training"] == {"rows": [0, 7 * 144 - 12]}
