from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from frames.shapes import SENSORS, long, wide
from vace_ad.errors import ConfigError, InputError
from vace_ad.frames.layout import pivot


def split(frame: pl.DataFrame) -> tuple[pl.DataFrame, np.ndarray]:
    return frame.drop("time"), frame["time"].to_numpy()


def test_a_long_table_becomes_the_wide_one() -> None:
    shuffled = long().sample(fraction=1, shuffle=True, seed=0)
    frame, time, notes = pivot(*split(shuffled), "sensor,value")
    assert frame.select(SENSORS).equals(wide().select(SENSORS))
    assert time.tolist() == wide()["time"].to_numpy().tolist()
    assert notes == ["long table: 3 values of 'sensor' are channels now"]


def test_holes_repeats_and_rows_without_a_sensor() -> None:
    odd = pl.concat([long()[1:], long()[5:6].with_columns(value=pl.lit(9.0))])
    odd = odd.with_columns(
        sensor=pl.when(pl.int_range(pl.len()) == 10).then(None).otherwise(pl.col("sensor"))
    )
    frame, _, notes = pivot(*split(odd), ("sensor", "value"))
    assert frame.height == 200
    assert sum(frame.null_count().row(0)) == 2
    assert notes[0] == "1 rows left out: they name no sensor"
    assert notes[1] == "1 values averaged with others of the same time"


def test_wrong_columns() -> None:
    with pytest.raises(ConfigError, match="name two columns"):
        pivot(*split(long()), "sensor")
    with pytest.raises(InputError, match="no column is called 'tag'"):
        pivot(*split(long()), "tag,value")
    with pytest.raises(InputError, match="'sensor' holds words"):
        pivot(*split(long()), "value,sensor")
    with pytest.raises(InputError, match="needs a time column"):
        pivot(long().drop("time"), None, "sensor,value")
    many = pl.DataFrame({"sensor": [f"s{i}" for i in range(10_001)], "value": 1.0})
    with pytest.raises(InputError, match="too many"):
        pivot(many, np.repeat(np.datetime64("2026-01-01", "ns"), 10_001), "sensor,value")
