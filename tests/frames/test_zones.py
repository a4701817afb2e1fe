from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vace_ad.frames.write import frame_like, zone_of
from vace_ad.frames.zones import steady_clock, wall_clock, zone_of_offset, zone_words, zoned

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


def test_an_axis_never_goes_back() -> None:
    night = np.datetime64("2026-10-24T22:00", "ns") + np.arange(8) * np.timedelta64(1, "h")
    assert (np.diff(wall_clock(night, "Europe/Berlin")) < np.timedelta64(1, "h")).any()
    axis, words = steady_clock(night, "Europe/Berlin")
    assert axis is not None
    assert (np.diff(axis) == np.timedelta64(1, "h")).all()
    assert words == "UTC+02:00 (Europe/Berlin as at the start)"
    assert steady_clock(NOON[:1], "Europe/Berlin")[1] == "Europe/Berlin"


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
