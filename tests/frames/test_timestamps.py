from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vace_ad.frames.table import frame_like, zone_of
from vace_ad.frames.timestamps import (
    offsets,
    time_words,
    wall_clock,
    zone_of_offset,
    zone_words,
    zoned,
)

NOON = np.array(["2026-01-01T11:00", "2026-07-01T10:00"], dtype="M8[ns]")  # in UTC


def test_the_wall_clock_of_a_zone() -> None:
    assert wall_clock(NOON, "Europe/Berlin").astype(str).tolist() == [
        "2026-01-01T12:00:00.000000000",
        "2026-07-01T12:00:00.000000000",
    ]
    assert wall_clock(NOON, None) is NOON
    assert zoned("t", NOON, "Europe/Berlin").dt.hour().to_list() == [12, 12]


@pytest.mark.parametrize(
    ("offset", "zone", "words"),
    [
        ("+01:00", "Etc/GMT-1", "UTC+01:00"),
        ("-0500", "Etc/GMT+5", "UTC-05:00"),
        ("+05:30", "UTC", "UTC"),
        ("+00:00", "UTC", "UTC"),
    ],
)
def test_offsets(offset: str, zone: str, words: str) -> None:
    assert zone_of_offset(offset) == zone
    assert zone_words(zone) == words


def test_offsets_over_a_change_of_clocks() -> None:
    night = np.datetime64("2026-10-24T22:00", "ns") + np.arange(8) * np.timedelta64(1, "h")
    assert offsets(night, "Europe/Berlin") == [(0, 120), (3, 60)]
    assert offsets(night, "UTC") == [(0, 0)]
    assert offsets(night, None) == offsets(None, "UTC") == offsets(night[:0], "UTC") == []


def test_times_as_people_write_them() -> None:
    assert [time_words(time, "Europe/Berlin") for time in NOON] == [
        "2026-01-01 12:00+01:00",
        "2026-07-01 12:00+02:00",
    ]
    assert time_words(NOON[0], "America/St_Johns") == "2026-01-01 07:30-03:30"
    assert time_words(NOON[0] + np.timedelta64(1500, "ms"), None) == "2026-01-01 11:00:01.500"


def test_answers_come_in_the_callers_zone() -> None:
    index = pd.date_range("2026-01-01", periods=5, freq="h", tz="Europe/Berlin")
    data = pd.DataFrame({"a": range(5)}, index=index)
    assert zone_of(data) == "Europe/Berlin"
    utc = index.tz_convert("UTC").tz_localize(None).to_numpy().astype("M8[ns]")
    events = frame_like(data, {"start_time": utc[1:2], "end_time": utc[3:4]})
    chosen = data.loc[events["start_time"][0] : events["end_time"][0]]
    assert chosen["a"].tolist() == [1, 2, 3]
    plain = frame_like(data.tz_localize(None), {"start_time": utc[1:2]})
    assert plain["start_time"].dt.tz is None
