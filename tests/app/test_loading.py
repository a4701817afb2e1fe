from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from frames.shapes import keyed, long, times, wide
from vace_ad.app.loading import load_table
from vace_ad.app.reader import read
from vace_ad.errors import ConfigError, InputError, VaceWarning
from vace_ad.frames.read_options import ReadOptions


def test_a_long_table_from_a_file(tmp_path: Path) -> None:
    long().write_csv(tmp_path / "long.csv")
    with pytest.raises(InputError, match=r"long='sensor,value'$"):
        load_table(tmp_path / "long.csv", ReadOptions())
    loaded = load_table(tmp_path / "long.csv", ReadOptions(long="sensor,value"))
    assert loaded.frame().drop("time").equals(wide().drop("time"))


def test_rows_are_those_of_the_file(tmp_path: Path) -> None:
    keep = np.delete(np.arange(200), [20, 50, 51, 120])
    wide()[keep].write_csv(tmp_path / "t.csv")
    loaded = load_table(tmp_path / "t.csv", ReadOptions())
    assert loaded.frame().equals(wide()[keep])
    assert loaded.notes == ["3 gaps in time, the longest 3 min"]


def test_zones_come_back(tmp_path: Path) -> None:
    local = wide().with_columns(pl.col("time").dt.replace_time_zone("Europe/Berlin"))
    local.write_parquet(tmp_path / "t.parquet")
    assert load_table(tmp_path / "t.parquet", ReadOptions()).frame().equals(local)
    wide().write_csv(tmp_path / "t.csv")
    loaded = load_table(tmp_path / "t.csv", ReadOptions(time_zone="Europe/Berlin"))
    assert loaded.frame().equals(local)


def test_rows_of_the_same_time(tmp_path: Path) -> None:
    pl.concat([wide(), wide()[-3:]]).write_csv(tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"goes backwards.*sort=True"):
        load_table(tmp_path / "t.csv", ReadOptions())
    loaded = load_table(tmp_path / "t.csv", ReadOptions(sort=True))
    assert len(loaded.table) == 200
    np.testing.assert_allclose(loaded.table.values, wide().drop("time").to_numpy())


def test_read_gives_a_table_and_warns(tmp_path: Path) -> None:
    wide().with_columns(state=pl.lit("on")).write_csv(tmp_path / "t.csv")
    with pytest.warns(VaceWarning, match="'state' is text: left out"):
        frame = read(tmp_path / "t.csv", time_zone="UTC")
    assert frame.columns == ["time", "flow", "pressure", "temp [degC]"]
    assert frame.schema["time"] == pl.Datetime("ns", "UTC")
    with pytest.raises(ConfigError, match="'timezone' is not an option of read"):
        read(tmp_path / "t.csv", timezone="UTC")


def test_read_keeps_the_keys(tmp_path: Path) -> None:
    keyed().write_csv(tmp_path / "t.csv")
    frame = read(tmp_path / "t.csv", by="machine")
    assert frame.columns[0] == "machine"
    assert frame.height == 800
    for machine in ("a", "b"):
        wide().write_csv(tmp_path / f"{machine}.csv")
    files = read([tmp_path / "a.csv", tmp_path / "b.csv"], by="file")
    assert files["file"].unique(maintain_order=True).to_list() == ["a", "b"]


def test_the_night_of_the_spring_change(tmp_path: Path) -> None:
    night = times(600, "2026-03-28T22:00")
    night = night[
        (night < np.datetime64("2026-03-29T02")) | (night >= np.datetime64("2026-03-29T03"))
    ]
    wide(len(night)).with_columns(time=night).write_csv(tmp_path / "t.csv")
    loaded = load_table(tmp_path / "t.csv", ReadOptions())
    assert "time_zone='Europe/Berlin'" in loaded.notes[-1]
    zoned = load_table(tmp_path / "t.csv", ReadOptions(time_zone="Europe/Berlin"))
    assert zoned.notes == []


@pytest.mark.parametrize("kind", ["polars", "pandas", "index", "arrow"])
def test_a_table_in_memory_is_read_as_a_file_is(kind: str, tmp_path: Path) -> None:
    jitter = np.random.default_rng(0).integers(0, 20, 200) * np.timedelta64(10**9, "ns")
    table = wide().with_columns(time=times(200) + jitter)
    table.write_parquet(tmp_path / "t.parquet")
    given = {
        "polars": table,
        "pandas": table.to_pandas(),
        "index": table.to_pandas().set_index("time"),
        "arrow": table.to_arrow(),
    }[kind]
    with pytest.warns(VaceWarning, match="rows averaged over 2min"):
        read_back = read(given, resample="2min")
    with pytest.warns(VaceWarning, match="rows averaged over 2min"):
        assert read_back.equals(read(tmp_path / "t.parquet", resample="2min"))
    with pytest.warns(VaceWarning, match="the step is irregular"):
        read(given)
    with pytest.raises(ConfigError, match="filter the table before the fit"):
        read(given, where="a > 1")


def test_the_command_line_says_how_to_learn_from_one_state_alone(tmp_path: Path) -> None:
    state = pl.Series("state", ["run", "stop"]).gather(np.arange(200) // 100)
    wide().with_columns(state).write_csv(tmp_path / "t.csv")
    advice = "--where \"state == 'run'\" would train on some rows only"
    assert load_table(tmp_path / "t.csv", ReadOptions(options=True)).notes[-1] == advice
    assert advice not in load_table(tmp_path / "t.csv", ReadOptions()).notes
    chosen = load_table(tmp_path / "t.csv", ReadOptions(options=True, where="state == 'run'"))
    assert advice not in chosen.notes
    assert chosen.normal is not None
    assert chosen.normal.sum() == 100
