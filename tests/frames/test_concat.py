from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from frames.shapes import wide
from vace_ad.app.loading import load_table
from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.read_options import ReadOptions

PLAIN = ReadOptions()


def test_files_are_joined_in_order_of_time_whatever_their_names(tmp_path: Path) -> None:
    wide()[:100].write_csv(tmp_path / "10.csv")
    wide()[100:].write_parquet(tmp_path / "2.parquet")
    loaded = load_table(tmp_path, PLAIN)
    assert loaded.frame().drop("time").equals(wide().drop("time"))
    assert loaded.source.source == "2 files"
    assert loaded.source.format == "CSV and Parquet"
    again = load_table([tmp_path / "2.parquet", tmp_path / "10.csv"], PLAIN)
    assert again.frame().equals(loaded.frame())


def test_files_that_overlap_are_refused_with_both_fixes(tmp_path: Path) -> None:
    wide().write_csv(tmp_path / "a.csv")
    wide(seed=1).write_csv(tmp_path / "b.csv")
    with pytest.raises(InputError, match=r"a\.csv and .*b\.csv cover the same time; .*by='file'"):
        load_table(tmp_path, PLAIN)
    merged = load_table(tmp_path, ReadOptions(sort=True))
    assert len(merged.table) == 200
    assert any("200 rows averaged" in note for note in merged.notes)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    wide()[:100].write_csv(tmp_path / "a.csv")
    wide()[100:].drop("flow").write_csv(tmp_path / "b.csv")
    with pytest.raises(TableReadError, match=r"b\.csv lacks 'flow'"):
        load_table(tmp_path, PLAIN)
    wide()[100:].with_columns(flow=pl.lit("word")).write_csv(tmp_path / "b.csv")
    with pytest.raises(
        TableReadError, match=r"'flow' is Float64 in .* and String in .*drop='flow'"
    ):
        load_table(tmp_path, PLAIN)


def test_keys_from_paths_are_recognised(tmp_path: Path) -> None:
    for machine in ("p1", "p2"):
        (tmp_path / f"machine={machine}").mkdir()
        wide().write_parquet(tmp_path / f"machine={machine}" / "x.parquet")
    with pytest.raises(InputError, match=r"by='machine'$"):
        load_table(tmp_path, PLAIN)
    wide().with_columns(machine=pl.lit("p3")).write_parquet(tmp_path / "machine=p2" / "x.parquet")
    with pytest.raises(TableReadError, match="has a column 'machine', and its path names one"):
        load_table(tmp_path, PLAIN)
