from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.columns import channels_of


@pytest.fixture
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=20)
    return pl.DataFrame(
        {
            "row": np.arange(20),
            "a": a,
            "state": ["run"] * 20,
            "empty": [None] * 20,
            "valve": rng.integers(0, 2, 20).astype(bool),
            "still": np.full(20, 3),
            "a again": a,
            "Label": np.r_[np.zeros(15), np.ones(5)],
            "holes": [None, *(float(i) for i in range(5)), *([2.0] * 14)],
        }
    )


def test_what_is_kept_and_what_is_said(frame: pl.DataFrame) -> None:
    channels = channels_of(frame)
    assert channels.names == ("a", "valve", "still", "a again", "holes")
    assert channels.values.dtype == np.float64
    assert channels.values.shape == (20, 5)
    assert np.isnan(channels.values[0, 4])
    assert {note.name: note.kind for note in channels.notes} == {
        "row": "a row counter",
        "state": "text",
        "empty": "empty",
        "Label": "a label",
        "still": "constant",
        "a again": "identical to 'a'",
    }
    assert {note.name for note in channels.notes if note.kept} == {"still", "a again"}
    assert channels.notes[0].words() == "column 'row' is a row counter: left out"


def test_choosing_and_dropping(frame: pl.DataFrame) -> None:
    assert channels_of(frame, only=["a", "row"]).names == ("row", "a")
    assert "a" not in channels_of(frame, drop=["a"]).names
    with pytest.raises(InputError, match="no column is called 'b'"):
        channels_of(frame, only=["b"])
    with pytest.raises(InputError, match="'state' is text and cannot be a channel"):
        channels_of(frame, only=["a", "state"])


def test_no_numbers_at_all(frame: pl.DataFrame) -> None:
    with pytest.raises(TableReadError, match=r"no column holds numbers.*'state'"):
        channels_of(frame.select("state", "empty"))
