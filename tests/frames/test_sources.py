from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from frames.shapes import keyed, wide
from vace_ad.app.loading import load_table
from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.read_options import ReadOptions
from vace_ad.frames.sources import find_sources, refuse_no_key, with_keys


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for machine in ("p1", "p2"):
        (tmp_path / f"machine={machine}" / "year=2026").mkdir(parents=True)
        wide(20).write_parquet(tmp_path / f"machine={machine}" / "year=2026" / "a.parquet")
        (tmp_path / "flat").mkdir(exist_ok=True)
        wide(20).write_csv(tmp_path / "flat" / f"{machine}.csv")
    (tmp_path / "flat" / "readme.md").write_text("no table")
    (tmp_path / "flat" / ".hidden.csv").write_text("a\n1\n")
    return tmp_path


def test_folders_and_hive_keys(folder: Path) -> None:
    flat = find_sources(folder / "flat")
    assert [Path(one.place).name for one in flat] == ["p1.csv", "p2.csv"]
    hive = [one for one in find_sources(folder) if one.keys]
    assert [dict(one.keys) for one in hive] == [
        {"machine": "p1", "year": "2026"},
        {"machine": "p2", "year": "2026"},
    ]


def test_globs_and_patterns(folder: Path) -> None:
    assert len(find_sources(str(folder / "flat" / "*.csv"))) == 2
    named = find_sources(str(folder / "flat" / "{machine}.csv"))
    assert [one.keys for one in named] == [(("machine", "p1"),), (("machine", "p2"),)]
    deep = find_sources(str(folder / "machine={pump}" / "*" / "{part}.parquet"))
    assert next(dict(one.keys) for one in deep) == {"pump": "p1", "part": "a"}
    hive = find_sources(str(folder / "machine=*"))
    assert [dict(one.keys)["machine"] for one in hive] == ["p1", "p2"]


def test_a_file_named_twice_is_one(folder: Path) -> None:
    path = str(folder / "flat" / "p1.csv")
    assert len(find_sources([path, path])) == 1


def test_a_path_with_signs_that_exists_is_itself(tmp_path: Path) -> None:
    for name in ("a[1].csv", "b{x}.csv"):
        wide(5).write_csv(tmp_path / name)
        assert find_sources(tmp_path / name)[0].place == str(tmp_path / name)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(TableReadError, match="without a table"):
        find_sources(tmp_path)
    with pytest.raises(TableReadError, match="no file matches"):
        find_sources(str(tmp_path / "*.csv"))
    with pytest.raises(TableReadError, match=r"no file matches .* for \{machine\}"):
        find_sources(str(tmp_path / "{machine}.csv"))
    with pytest.raises(TableReadError, match="twice"):
        find_sources(str(tmp_path / "{m}" / "{m}.csv"))
    with pytest.raises(TableReadError, match="no table was named"):
        find_sources([])


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


def test_keys_that_are_missing_or_none() -> None:
    odd = keyed().with_columns(
        machine=pl.when(pl.int_range(pl.len()) < 5).then(None).otherwise(pl.col("machine"))
    )
    frame, notes = with_keys(odd, ["machine"])
    assert frame.height == 795
    assert notes == ["5 rows left out: they name no machine"]
    with pytest.raises(InputError, match="no column is called 'pump'"):
        with_keys(odd, ["pump"])
    with pytest.raises(InputError, match="no row names its machine"):
        with_keys(odd.with_columns(machine=pl.lit(None, dtype=pl.String)), ["machine"])
    numbers, _ = with_keys(pl.DataFrame({"m": [1.0, 2.0, None], "a": [1.0, 2.0, 3.0]}), ["m"])
    assert numbers["m"].to_list() == ["1", "2"]


def test_a_column_that_tells_rows_apart_is_no_key() -> None:
    with pytest.raises(InputError, match=r"'serial' has 100,000 different values.*1 row each"):
        refuse_no_key([1] * 100_000, ["serial"])
    refuse_no_key([500] * 4000, ["machine"])
    refuse_no_key([1] * 10, ["machine"])
