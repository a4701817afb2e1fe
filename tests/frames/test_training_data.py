"""Training data: several tables, Parquet files, very long ones."""

import numpy as np
import polars as pl
import pytest

from vace_ad import VACE, VACEConfig
from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.training_data import PIECES, training_parts, training_tables
from vace_ad.signals.baseline_model import Normal

CONFIG = VACEConfig.from_preset(None, max_fit_rows=4000)


@pytest.fixture
def table(rng):
    waves = np.sin(np.arange(9000)[:, None] / [5, 9]) + 0.1 * rng.normal(size=(9000, 2))
    return pl.DataFrame(waves, schema=["flow", "heat"])


def parts(data, config=CONFIG):
    tables, n_rows = training_tables(data, config, sort=False)
    names = tables[0].names
    tables = [table.aligned(names) for table in tables]
    found = training_parts(tables, names, config, lambda rows: Normal.fit(rows)[0].rebuild)
    return [part.rows for part in found], n_rows


def test_of_a_long_file_the_pieces_are_read_that_a_table_is_thinned_to(table, tmp_path):
    table.write_parquet(tmp_path / "long.parquet")
    (whole, n_whole), (read, n_read) = parts(table), parts(tmp_path / "long.parquet")
    assert n_whole == n_read == 9000
    assert len(whole) == len(read) == PIECES
    for piece, same in zip(whole, read, strict=True):
        np.testing.assert_array_equal(piece, same)
    assert sum(map(len, read)) <= CONFIG.max_fit_rows


def test_a_short_file_is_read_whole(table, tmp_path):
    table[:3000].write_parquet(tmp_path / "short.parquet")
    ((read,), n_rows) = parts(tmp_path / "short.parquet")
    assert n_rows == len(read) == 3000


def test_a_path_fits_as_its_table_does(table, tmp_path):
    path = tmp_path / "long.parquet"
    table.write_parquet(path)
    settings = {"max_fit_rows": 4000, "encoders": 1}
    by_path, by_table = VACE(**settings).fit(str(path)), VACE(**settings).fit(table)
    np.testing.assert_array_equal(by_path.score(table[:500]), by_table.score(table[:500]))
    assert by_path.facts_["rows"] == by_table.facts_["rows"] == 9000
    assert by_path.facts_["rows_used"] == by_table.facts_["rows_used"] <= 4000


def test_lists_of_tables_and_paths_mix(table, tmp_path):
    table[:3000].write_parquet(tmp_path / "first.parquet")
    pieces, n_rows = parts([str(tmp_path / "first.parquet"), table[3000:3900]])
    assert [len(piece) for piece in pieces] == [3000, 900]
    assert n_rows == 3900


def test_a_list_of_rows_is_one_table():
    assert len(training_tables([[1.0, 2.0], [3.0, 4.0]], CONFIG, sort=False)[0]) == 1
    assert training_tables([1.0, 2.0, 3.0], CONFIG, sort=False)[1] == 3


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ("none.parquet", TableReadError, "does not exist"),
        ("table.csv", TableReadError, "not a .parquet file"),
        ((row for row in [[1.0]]), InputError, "got a generator"),
    ],
)
def test_other_things_are_refused(data, error, words):
    with pytest.raises(error, match=words):
        training_tables(data, CONFIG, sort=False)


def test_parts_end_where_time_jumps_and_short_ones_are_left_out(table):
    minutes = np.arange(900)
    minutes[300:] += 60
    minutes[320:] += 60
    stamps = np.datetime64("2026-01-01", "ms") + minutes * np.timedelta64(60_000, "ms")
    timed = table[:900].with_columns(pl.Series("time", stamps))
    pieces, n_rows = parts(timed)
    assert [len(piece) for piece in pieces] == [300, 580]
    assert n_rows == 900


def test_long_gaps_of_one_channel_are_rebuilt_and_of_all_cut(table):
    rows = table[:2000].to_numpy().copy()
    rows[500:600, 0] = np.nan
    rows[1200:1210] = np.nan
    pieces, _ = parts(rows)
    assert [len(piece) for piece in pieces] == [1200, 790]
    assert np.isfinite(pieces[0]).all()
    strict = VACEConfig(max_fit_rows=4000, max_missing=0.0)
    assert [len(piece) for piece in parts(rows, strict)[0]] == [500, 600, 790]


def test_rows_that_hold_few_of_their_channels_are_named_as_such():
    pods = np.full((600, 40), np.nan)
    pods[np.arange(600), np.arange(600) // 15] = 1.0
    pods[:, 0] = np.arange(600) % 7
    with pytest.raises(InputError, match=r"a value in 2 or fewer of 40 channels.*resample='1min'"):
        VACE().fit(pods)


@pytest.mark.parametrize("unit", [1e45, 1e100, 1e150])
def test_units_beyond_what_is_exact_are_refused(table, unit):
    with pytest.raises(InputError, match=r"channel 'heat' has values beyond 1e\+40.*larger unit"):
        VACE().fit(table[:1000].with_columns(pl.col("heat") * unit))


def test_units_below_that_change_nothing(table):
    plain, large = (table[:1500].with_columns(pl.col("heat") * unit) for unit in (1.0, 1e39))
    scores = [VACE().fit(one[:1000]).score(one[1000:]) for one in (plain, large)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9)


def test_single_wild_cells_are_not_a_unit(table):
    wild = table[:1000].to_numpy().copy()
    wild[::100, 1] = 1e200
    assert VACE().fit(wild).channels_ == ("channel_0", "channel_1")
