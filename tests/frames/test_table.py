import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from vace_ad.errors import ChannelMismatchError, InputError
from vace_ad.frames import as_table
from vace_ad.frames.table import as_polars, frame_like

MINUTES = np.array(["2026-01-01T00:00", "2026-01-01T00:01"], dtype="datetime64[ns]")
COLUMNS = {"a": [1, 2, 3], "b": [True, False, True], "c": [0.5, None, 2.5]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_kind_gives_the_same_values_and_names(make):
    table = as_table(make(COLUMNS))
    assert table.names == ("a", "b", "c")
    np.testing.assert_array_equal(table.values, [[1, 1, 0.5], [2, 0, np.nan], [3, 1, 2.5]])
    assert table.values.dtype == np.float64


@pytest.mark.parametrize("dtype", ["i4", "u1", "?", "f2", "f4", ">f8"])
def test_arrays_of_any_real_type(dtype):
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    table = as_table(array)
    assert np.shares_memory(table.values, array)  # a table is never copied whole
    assert table.block(0, 1).dtype == np.float64
    np.testing.assert_array_equal(table.block(0, 2), [[0, 1], [1, 0]])


def test_masked_cells_are_missing():
    table = as_table(np.ma.MaskedArray([[1, 2], [3, 4]], [[False, True], [False, False]]))
    np.testing.assert_array_equal(table.values, [[1, np.nan], [3, 4]])


def test_float32_frames_stay_float32():
    assert as_table(pl.DataFrame({"a": [1.0]}, schema={"a": pl.Float32})).values.dtype == "f4"


def test_one_dimension_is_one_channel():
    assert as_table(np.arange(4)).values.shape == (4, 1)
    assert as_table(pd.Series([1.0, 2.0])).values.shape == (2, 1)
    assert as_table(pl.Series("x", [1.0, 2.0])).names == ("x",)


def test_time_comes_from_a_column_or_a_pandas_index():
    stamps = pd.date_range("2026-01-01", periods=3, freq="min")
    indexed = as_table(pd.DataFrame({"a": [1, 2, 3]}, index=stamps))
    column = as_table(pl.DataFrame({"when": list(stamps.to_pydatetime()), "a": [1, 2, 3]}))
    np.testing.assert_array_equal(indexed.time, column.time)
    assert column.names == ("a",)
    assert column.time.dtype == "datetime64[ns]"


def test_time_with_a_zone_is_in_utc():
    stamps = pd.date_range("2026-01-01", periods=2, freq="h", tz="Europe/Berlin")
    indexed = as_table(pd.DataFrame({"a": [1, 2]}, index=stamps))
    column = as_table(pl.DataFrame({"when": list(stamps.to_pydatetime()), "a": [1, 2]}))
    for table in (indexed, column):
        assert table.time[0] == np.datetime64("2025-12-31T23:00")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pd.DataFrame({"a": [1.0], "site": ["x"]}), "site"),
        (pl.DataFrame({"a": [1.0], "tag": ["x"]}), "tag"),
        (np.array([[1j]]), "complex"),
        (np.array([["a"]]), "real numbers"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.zeros((3, 0)), "at least one channel"),
        ("plant.csv", "str"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "columns"),
    ],
)
def test_what_is_no_table_is_named(data, words):
    with pytest.raises(InputError, match=words):
        as_table(data)


def test_channels_are_matched_by_name_and_reordered():
    table = as_table(pl.DataFrame({"a": [1.0], "b": [2.0]})).aligned(("b", "a"))
    np.testing.assert_array_equal(table.values, [[2, 1]])


def test_missing_and_extra_channels_are_listed():
    with pytest.raises(ChannelMismatchError, match=r"missing: 'z'; not known at fit: 'a'"):
        as_table(pl.DataFrame({"a": [1.0], "b": [2.0]})).aligned(("z", "b"))


def test_plain_arrays_match_by_count():
    assert as_table(np.zeros((2, 2))).aligned(("x", "y")).names == ("x", "y")
    with pytest.raises(InputError, match="3 channels without names"):
        as_table(np.zeros((2, 3))).aligned(("x", "y"))


def test_read_only_and_strided_arrays():
    array = np.zeros((10, 6))[::2, ::3]
    array.flags.writeable = False
    assert as_table(array).values.shape == (5, 2)


@pytest.mark.parametrize(
    ("name", "column", "title"),
    [(None, "a", "time"), ("ts", "a", "ts"), ("a", "a", "time"), (None, "time", "timestamp")],
)
def test_a_pandas_index_of_times_becomes_the_first_column(name, column, title):
    index = pd.date_range("2026-01-01", periods=2, freq="s", tz="Europe/Berlin", name=name)
    frame = as_polars(pd.DataFrame({column: [1.0, 2.0]}, index=index))
    assert frame.columns == [title, column]
    assert frame.schema[title].time_zone == "Europe/Berlin"


@pytest.mark.parametrize("other", [["a.csv"], "a.csv", np.zeros((2, 2)), pd.Series([1.0])])
def test_what_is_no_table_does_not_become_a_polars_one(other):
    with pytest.raises(TypeError):
        as_polars(other)


def test_arrays_get_polars() -> None:
    assert frame_like(np.zeros((2, 3)), {"x": [1]}).equals(pl.DataFrame({"x": [1]}))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_event_tables_come_in_the_callers_kind(kind: type) -> None:
    answer = frame_like(kind({"a": [1.0]}), {"start": MINUTES, "words": ["x", "y"]})
    assert isinstance(answer, kind)
    assert list(answer["words"]) == ["x", "y"]
    arrow = frame_like(pa.table({"a": [1.0]}), {"start": MINUTES})
    assert isinstance(arrow, pa.Table)
