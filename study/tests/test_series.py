import gzip

import numpy as np
import polars as pl
import pytest

from toys import make_table, write
from vace_ad.errors import InputError, TableReadError
from vace_study.series import SeriesName, load

STEM = "002_MSL_id_1_Sensor_tr_120_1st_180"


def test_a_name_says_what_is_inside():
    name = SeriesName.parse(f"/some/where/{STEM}.csv.gz")
    assert (name.stem, name.family, name.member, name.domain) == (STEM, "MSL", 1, "Sensor")
    assert (name.train_rows, name.first_anomaly, name.short) == (120, 180, "MSL id_1")


@pytest.mark.parametrize("file", ["MSL.csv", "002_MSL_id_x_Sensor_tr_1_1st_2.csv", f"{STEM}.xls"])
def test_a_foreign_name_is_refused(file):
    with pytest.raises(InputError, match="not a TSB-AD-M file name"):
        SeriesName.parse(file)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".parquet"])
def test_every_format_gives_the_same_series(tmp_path, suffix):
    frame = make_table(300, 2, 180)
    path = tmp_path / f"{STEM}{suffix}"
    if suffix == ".csv.gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    elif suffix == ".csv.zst":
        frame.write_csv(path, compression="zstd")
    else:
        write(frame, path)
    series = load(path)
    np.testing.assert_array_equal(series.values, frame.drop("Label").to_numpy())
    np.testing.assert_array_equal(series.labels, frame["Label"].to_numpy())
    assert series.values.dtype == np.float64
    assert series.notes == ()


def test_rows_with_missing_values_are_dropped_and_counted(tmp_path):
    frame = make_table(300, 2, 180)
    frame[7, "c0"] = float("nan")
    frame[9, "c1"] = None
    write(frame, tmp_path / f"{STEM}.csv")
    series = load(tmp_path / f"{STEM}.csv")
    assert len(series.values) == 298
    assert "2 rows with missing values dropped" in series.notes
    assert any("first anomaly is row 178, the name says 180" in note for note in series.notes)


def test_a_series_without_anomalies_says_so(tmp_path):
    write(make_table(300, 2, 180).with_columns(Label=pl.lit(0)), tmp_path / f"{STEM}.parquet")
    assert "there is none" in load(tmp_path / f"{STEM}.parquet").notes[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop("Label"), "the last column is"),
        (lambda f: f.select("Label"), "no channel"),
        (lambda f: f.with_columns(Label=pl.lit(2)), "expected are 0 and 1"),
        (lambda f: f.head(120), "120 training rows, the file has 120"),
    ],
)
def test_content_that_cannot_be_meant_is_refused(tmp_path, change, message):
    write(change(make_table(300, 2, 180)), tmp_path / f"{STEM}.parquet")
    with pytest.raises(InputError, match=message):
        load(tmp_path / f"{STEM}.parquet")


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / f"{STEM}.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(TableReadError, match="002_MSL"):
        load(tmp_path / f"{STEM}.parquet")
