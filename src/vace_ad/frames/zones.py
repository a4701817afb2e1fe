"""Time zones: times are kept in UTC and shown in the zone that they came in."""

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


def steady_clock(
    time: NDArray[np.datetime64] | None, zone: str | None
) -> tuple[NDArray[np.datetime64] | None, str | None]:
    """Local times that never go back, for an axis, and the words for their zone.

    Over a change of summer time the offset of the first row holds throughout.
    """
    if time is None or zone is None or zone == "UTC" or not len(time):
        return time, zone
    local = wall_clock(time, zone)
    offsets = local - time
    if (offsets == offsets[0]).all():
        return local, zone_words(zone)
    hours = float(offsets[0] / np.timedelta64(1, "h"))
    sign, rest = "-" if hours < 0 else "+", abs(hours)
    words = f"UTC{sign}{int(rest):02}:{round(rest % 1 * 60):02} ({zone} as at the start)"
    return time + offsets[0], words
