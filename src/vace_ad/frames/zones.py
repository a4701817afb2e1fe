"""Time zones: times are stored in UTC and shown in the zone of the input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")
_FIXED = re.compile(r"Etc/GMT([+-])(\d{1,2})")


def check_zone(zone: str) -> None:
    """Refuse a name that is no time zone."""
    import polars as pl

    try:
        pl.Series([0]).cast(pl.Datetime("ns")).dt.replace_time_zone(zone)
    except pl.exceptions.PolarsError as error:
        raise ConfigError(
            f"time zone {zone!r} is not known; use a name such as Europe/Berlin or UTC"
        ) from error


def zone_of_offset(offset: str) -> str:
    """The zone of an offset such as +01:00; "UTC" where it is no whole number of hours."""
    match = _OFFSET.fullmatch(offset)
    if match is None or int(match[3] or 0) or not 0 < int(match[2]) <= 12:
        return "UTC"
    sign = "-" if match[1] == "+" else "+"  # the names count the other way
    return f"Etc/GMT{sign}{int(match[2])}"


def zone_words(zone: str | None) -> str:
    """A zone as people write it: UTC+01:00 for a fixed offset, else its name."""
    match = _FIXED.fullmatch(zone or "")
    if match is None:
        return zone or ""
    return f"UTC{'+' if match[1] == '-' else '-'}{int(match[2]):02}:00"


def zoned(name: str, time: NDArray[np.datetime64], zone: str | None) -> pl.Series:
    """A column of times: in their zone where it is known, as they stand otherwise."""
    import polars as pl

    column = pl.Series(name, time.astype("datetime64[ns]"))
    if zone is None:
        return column
    return column.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


def wall_clock(time: NDArray[np.datetime64], zone: str | None) -> NDArray[np.datetime64]:
    """What a clock on the wall showed at these UTC times, (n,)."""
    if zone is None or zone == "UTC":
        return time
    local = zoned("time", np.atleast_1d(time), zone).dt.replace_time_zone(None)
    return local.to_numpy().astype("datetime64[ns]").reshape(np.shape(time))


def offset_words(minutes: int) -> str:
    """What a clock is ahead of UTC, e.g. +01:00."""
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


def offsets(time: NDArray[np.datetime64] | None, zone: str | None) -> list[tuple[int, int]]:
    """From which row on local clocks are how many minutes ahead of UTC; empty without a zone."""
    if time is None or zone is None or not len(time):
        return []
    ahead = (wall_clock(time, zone) - time).astype("timedelta64[m]").astype(np.int64)
    rows = np.flatnonzero(np.diff(ahead, prepend=ahead[0] + 1))
    return [(int(row), int(ahead[row])) for row in rows]


def local_time(time: np.datetime64, zone: str | None) -> tuple[np.datetime64, str]:
    """A time as the clock showed it, and its offset from UTC; as it stands without a zone."""
    ahead = offsets(np.array([time]), zone)
    if not ahead:
        return time, ""
    minutes = ahead[0][1]
    return time + np.timedelta64(minutes, "m"), offset_words(minutes)


def time_words(time: np.datetime64, zone: str | None) -> str:
    """A time as people write it: no seconds, or fractions of them, where there are none."""
    local, offset = local_time(time, zone)
    text = str(local.astype("datetime64[ms]")).replace("T", " ")
    return text.removesuffix(".000").removesuffix(":00") + offset
