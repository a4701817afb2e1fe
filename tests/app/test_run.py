from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from vace_ad.app.loading import load_table
from vace_ad.app.run import choose_training, fit_detector
from vace_ad.config import VACEConfig
from vace_ad.errors import ConfigError, InputError, VaceError
from vace_ad.frames.read_options import ReadOptions, TrainingOptions
from vace_ad.progress import silent

CONFIG = VACEConfig.from_preset(None, patch_length=16, stride=4, encoders=1, widths=(8, 8, 8, 8))


def test_training_is_cut_where_time_jumps(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    minutes = np.arange(1200)
    minutes[300:] += 60
    minutes[800:] += 60
    time = np.datetime64("2026-01-01", "ms") + minutes * np.timedelta64(60_000, "ms")
    waves = np.sin(np.arange(1200)[:, None] / [5, 7]) + 0.1 * rng.normal(size=(1200, 2))
    path = tmp_path / "plant.parquet"
    pl.DataFrame({"time": time, "a": waves[:, 0], "b": waves[:, 1]}).write_parquet(path)
    how = ReadOptions()
    loaded = load_table(str(path), how)
    training = choose_training(loaded, CONFIG, TrainingOptions(train_rows=700), how)
    detector, _ = fit_detector(CONFIG, training, silent)
    assert detector.facts_["rows"] == 700
    assert detector.facts_["patches"] == (300 - 15) + (400 - 15)


def plant(path: Path) -> Path:
    """1,200 minutes of two waves, a state, and a sensor that starts at minute 600."""
    rng = np.random.default_rng(0)
    time = np.datetime64("2026-01-01", "ms") + np.arange(1200) * np.timedelta64(60_000, "ms")
    waves = np.sin(np.arange(1200)[:, None] / [5, 7]) + 0.1 * rng.normal(size=(1200, 2))
    state = ["run" if i % 400 >= 100 else "stop" for i in range(1200)]
    late = np.where(np.arange(1200) < 600, np.nan, waves[:, 0] * 2)
    frame = {"time": time, "a": waves[:, 0], "b": waves[:, 1], "state": state, "late": late}
    pl.DataFrame(frame).fill_nan(None).write_csv(path)
    return path


def chosen(path: Path, how: ReadOptions | None = None, **ways: object):
    how = how or ReadOptions(columns="a,b")
    loaded = load_table(str(path), how)
    given = TrainingOptions(**{f"train_{name}": value for name, value in ways.items()})
    training = choose_training(loaded, CONFIG, given, how)
    detector, notes = fit_detector(CONFIG, training, silent)
    return detector, training, notes


def test_rows_are_learned_from_where_a_condition_holds(tmp_path: Path) -> None:
    path = plant(tmp_path / "t.csv")
    how = ReadOptions(drop="late", where="state == 'run'")
    detector, training, _ = chosen(path, how, rows=1000)
    assert detector.channels_ == ("a", "b")
    assert detector.facts_["rows"] == 700
    assert detector.facts_["patches"] == 2 * (300 - 15) + (100 - 15)
    assert training.words == "the first 1,000 rows (83%), 300 of them left out"
    resampled = load_table(str(path), replace(how, resample="2min"))
    assert resampled.normal is not None
    assert resampled.normal.tolist() == [i % 200 >= 50 for i in range(600)]
    assert resampled.table.names == ("a", "b")
    with pytest.raises(InputError, match="no row satisfies where=\"state == 'gone'\""):
        load_table(str(path), ReadOptions(where="state == 'gone'"))
    with pytest.raises(ConfigError, match="where and long cannot be combined"):
        load_table(str(path), ReadOptions(where="a > 1", long="state,a"))


def test_missing_rows_do_not_cut_the_training(tmp_path: Path) -> None:
    path = plant(tmp_path / "t.csv")
    keep = np.delete(np.arange(1200), [50, 130, 131, 700])
    pl.read_csv(path)[keep].write_csv(path)
    how = ReadOptions(columns="a,b", where="state == 'run'")
    loaded = load_table(str(path), how)
    assert loaded.normal is not None
    assert loaded.normal.tolist() == (keep % 400 >= 100).tolist()
    detector, _, _ = chosen(path, how, rows=996)
    assert detector.facts_["patches"] == 2 * (300 - 15) + (100 - 15)


def test_several_ranges_and_ranges_left_out(tmp_path: Path) -> None:
    path = plant(tmp_path / "t.csv")
    ranges = ["..2026-01-01T05:00", "2026-01-01T10:00..2026-01-01 15:00"]
    detector, training, _ = chosen(path, range=ranges)
    assert detector.facts_["rows"] == 600
    assert training.rows is None
    assert training.record() == {"ranges": ranges}
    detector, training, _ = chosen(path, rows=600, skip=["2026-01-01T02:00..2026-01-01T03:00"])
    assert detector.facts_["rows"] == 540
    assert "60 of them left out" in training.words
    zoned = ReadOptions(columns="a,b", time_zone="Europe/Berlin")
    detector, _, _ = chosen(path, zoned, range=ranges)
    assert detector.facts_["rows"] == 600


@pytest.mark.parametrize(
    ("ways", "message"),
    [
        ({"range": ["2026"]}, "write FROM..TO"),
        ({"range": [".."]}, "write FROM..TO"),
        ({"range": ["x..y"]}, "train_range='x..y': write FROM..TO"),
        ({"skip": ["2026-02-01..2026-01-01"]}, "ends before it begins"),
        ({"range": ["2027-01-01..2027-02-01"]}, "no row is left to train on"),
        ({"range": ["2026-01-01.."], "rows": 5}, "train_rows and train_range cannot be combined"),
    ],
)
def test_ranges_that_say_nothing(tmp_path: Path, ways: dict[str, object], message: str) -> None:
    with pytest.raises(VaceError, match=message):
        chosen(plant(tmp_path / "t.csv"), **ways)


def test_a_channel_that_starts_after_training_is_left_out_and_said(tmp_path: Path) -> None:
    path = plant(tmp_path / "t.csv")
    detector, _, notes = chosen(path, ReadOptions(), rows=500)
    assert detector.channels_ == ("a", "b")
    assert any("left out, since no training row has a value of it: 'late'" in n for n in notes)
    detector, _, notes = chosen(path, ReadOptions(), rows=900)
    assert detector.channels_ == ("a", "b", "late")
