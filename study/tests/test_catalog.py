import hashlib

import numpy as np
import pytest

from toys import make_folder
from vace_ad.errors import ConfigError, InputError
from vace_study.catalog import find_series
from vace_study.series import load


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "TSB-AD-M")


def names(entries):
    return [entry.name.short for entry in entries]


def test_all_series_in_the_benchmarks_order(folder):
    assert names(find_series(folder)) == ["Genesis id_1", "MSL id_1", "MSL id_2", "SMAP id_1"]


def test_the_folder_above_will_do(folder):
    assert len(find_series(folder.parent)) == 4


@pytest.mark.parametrize("file", ["tsb-ad-m-tuning.csv", "TSB-AD-M-Tuning.csv"])
def test_the_list_beside_the_data_splits(folder, file):
    text = "file_name\n003_MSL_id_2_Sensor_tr_90_1st_130.csv\n"
    (folder.parent / file).write_text(text)
    assert names(find_series(folder, "tuning")) == ["MSL id_2"]
    assert names(find_series(folder, "eval")) == ["Genesis id_1", "MSL id_1", "SMAP id_1"]
    assert len(find_series(folder)) == 4


def test_without_a_list_the_benchmarks_own_one_splits(folder):
    (folder / "004_MSL_id_3_Sensor_tr_530_1st_630.csv").write_text("c0,Label\n")
    assert names(find_series(folder, "tuning")) == ["MSL id_3"]


def test_families_and_globs_choose(folder):
    assert names(find_series(folder, families=["msl"])) == ["MSL id_1", "MSL id_2"]
    assert names(find_series(folder, globs=["*_id_2_*", "144_*"])) == ["MSL id_2", "SMAP id_1"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"families": ["MLS"]}, ConfigError, "there are Genesis, MSL, SMAP"),
        ({"globs": ["nothing*"]}, InputError, "none of the 4 series"),
        ({"split": "test"}, ConfigError, "must be eval, tuning or all"),
    ],
)
def test_what_is_not_there_is_said(folder, arguments, error, message):
    with pytest.raises(error, match=message):
        find_series(folder, **arguments)


def test_no_folder_and_no_series(tmp_path):
    with pytest.raises(InputError, match="bench fetch"):
        find_series(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no series"):
        find_series(tmp_path)


def test_one_series_in_two_formats_is_refused(folder):
    make_folder(folder, suffix=".parquet")
    with pytest.raises(InputError, match="one series, two files"):
        find_series(folder)


@pytest.mark.data
def test_the_real_folder(data_folder):
    entries = find_series(data_folder)
    tuning = [entry for entry in entries if entry.split == "tuning"]
    assert len(entries) >= 70
    assert 0 < len(tuning) < 10


@pytest.mark.data
def test_one_tuning_series_is_an_evaluation_series(data_folder):
    """As docs/errata.md says: by the values of all rows, whatever the labels."""
    found = {}
    for entry in find_series(data_folder):
        series = load(entry.path)
        digest = hashlib.sha256(series.values.tobytes()).hexdigest()
        found.setdefault((series.values.shape, digest), []).append(entry)
    assert sum(map(len, found.values())) == 74
    (pair,) = (entries for entries in found.values() if len(entries) > 1)
    assert [entry.name.short for entry in pair] == ["MSL id_10", "MSL id_13"]
    assert [entry.split for entry in pair] == ["tuning", "eval"]
    marked = [np.flatnonzero(load(entry.path).labels) for entry in pair]
    assert [(rows[0], rows[-1], len(rows)) for rows in marked] == [
        (4590, 4720, 131),
        (4575, 4755, 181),
    ]
