from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest

from vace_ad.app.results import write_frame
from vace_ad.errors import ConfigError, InputError

TIME = np.array(["2026-01-01T00:00", "2026-01-01T00:01"], dtype="datetime64[ns]")
SCORES = {"score": np.array([0.5, 2.0])}


def test_files(tmp_path: Path) -> None:
    frame = pl.DataFrame({"time": TIME, **SCORES})
    write_frame(frame, tmp_path / "s.parquet")
    assert pl.read_parquet(tmp_path / "s.parquet").equals(frame)
    write_frame(frame, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines()[1].startswith("2026-01-01T00:00:00")
    with pytest.raises(ConfigError, match=r"written as \.parquet, \.csv or \.xlsx"):
        write_frame(frame, tmp_path / "s.json")


def test_a_sheet_has_dates_numbers_and_no_formulas(tmp_path: Path) -> None:
    times = pl.Series("t", TIME).dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
    frame = pl.DataFrame([times, pl.Series("x", [0.5, None]), pl.Series("=w", ["=1+1", "ö;"])])
    write_frame(frame, tmp_path / "t.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "t.xlsx").active.iter_rows())
    assert [cell.value for cell in rows[0]] == ["t", "x", "=w"]
    assert rows[1][0].value == datetime(2026, 1, 1, 1, 0)
    assert [cell.value for cell in rows[1][1:]] == [0.5, "=1+1"]
    assert {rows[0][2].data_type, rows[1][2].data_type} == {"s"}
    assert rows[2][1].value is None
    with pytest.raises(InputError, match=r"got 1,048,576 rows; a sheet has 1,048,576, its header"):
        write_frame(pl.DataFrame({"a": np.zeros(2**20)}), tmp_path / "large.xlsx")
    assert not (tmp_path / "large.xlsx").exists()
