"""Long tables, with a row for each sensor and time, to one column for each sensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError, InputError
from vace_ad.settings import option

if TYPE_CHECKING:
    import polars as pl

MOST = 10_000  # sensors; more are a mistake in the column, not a wish


def pivot(
    frame: pl.DataFrame,
    time: NDArray[np.datetime64] | None,
    long: str | Sequence[str],
    by: Sequence[str] = (),
) -> tuple[pl.DataFrame, NDArray[np.datetime64], list[str]]:
    """A column for each value of the sensor column, a row for each time, in order of time.

    `long` names the column of sensors and the column of values. Several values of one sensor at
    one time are averaged, and said.
    """
    import polars as pl

    sensor, value = _columns(frame, long)
    if time is None:
        raise InputError(
            "a long table needs a time column, and none was found; name it with "
            f"{option('time_column')}"
        )
    if not (frame.schema[value].is_numeric() or frame.schema[value] == pl.Boolean):
        first = frame[value].drop_nulls().first()
        raise InputError(
            f"column {value!r} holds words (such as {first!r}), not values; name the column of "
            f"values in {option('long', f'{sensor},VALUE')}"
        )
    notes = []
    nameless = frame[sensor].null_count()
    if nameless:
        keep = frame[sensor].is_not_null()
        frame, time = frame.filter(keep), time[keep.to_numpy()]
        notes.append(f"{nameless:,} rows left out: they name no {sensor}")
    count = frame[sensor].n_unique()
    if not 0 < count <= MOST:
        raise InputError(
            f"column {sensor!r} has {count:,} different values; as sensors that is "
            f"{'none' if count == 0 else 'too many'}: name another in "
            f"{option('long', 'SENSOR,VALUE')}"
        )
    stamped = frame.select(
        pl.Series("\0time", time),
        *by,
        pl.col(sensor).cast(pl.String),
        pl.col(value).cast(pl.Float64),
    ).with_columns(pl.col(value).fill_nan(None))
    pairs = stamped.select("\0time", *by, sensor).n_unique()
    if pairs < stamped.height:
        notes.append(f"{stamped.height - pairs:,} values averaged with others of the same time")
    wide = stamped.pivot(
        on=sensor, index=["\0time", *by], values=value, aggregate_function="mean", sort_columns=True
    ).sort("\0time", maintain_order=True)
    notes.append(f"long table: {count:,} values of {sensor!r} are channels now")
    return wide.drop("\0time"), wide["\0time"].to_numpy().astype("datetime64[ns]"), notes


def _columns(frame: pl.DataFrame, long: str | Sequence[str]) -> tuple[str, str]:
    parts = [part.strip() for part in long.split(",")] if isinstance(long, str) else list(long)
    if len(parts) != 2:
        raise ConfigError(
            f"{option('long', long)}: name two columns, that of the sensors and that of the "
            f"values: {option('long', 'sensor,value')}"
        )
    for name in parts:
        if name not in frame.columns:
            raise InputError(
                f"no column is called {name!r}; the table has {', '.join(frame.columns[:12])}"
                f"{', …' if frame.width > 12 else ''}"
            )
    return parts[0], parts[1]
