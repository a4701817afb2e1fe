from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from frames.shapes import SENSORS, keyed, long, times, wide
from vace_ad.errors import ConfigError, InputError
from vace_ad.frames.layout import Layout, pivot, recognise, refuse_other_shapes
from vace_ad.settings import spelt


def shape(frame: pl.DataFrame) -> Layout | None:
    return recognise(frame.drop("time"), frame["time"].to_numpy())


def test_one_series_is_one_series() -> None:
    assert shape(wide()) is None
    states = wide().with_columns(state=pl.Series(["run", "stop"] * 100))
    assert shape(states) is None
    modes = wide().with_columns(mode=pl.Series(np.repeat(["heat", "hold", "cool", "off"], 50)))
    assert shape(modes) is None
    whole = wide().with_columns(count=pl.Series(np.arange(200) % 7))
    assert shape(whole) is None
    assert recognise(states.drop("time"), None) is None


def test_a_state_in_a_table_of_irregular_step() -> None:
    rng = np.random.default_rng(0)
    uneven = times(1)[0] + np.cumsum(rng.integers(1, 100, 200)).astype("m8[s]")
    states = wide().with_columns(
        time=uneven.astype("M8[ns]"), state=pl.Series(rng.choice(["a", "b"], 200))
    )
    assert shape(states) is None


def test_a_long_table() -> None:
    for frame in (long(), long().sort("sensor"), long().sample(fraction=1, shuffle=True, seed=1)):
        assert shape(frame) == Layout((), "sensor", "value", 3)
    with pytest.raises(InputError, match=r"long='sensor,value'$") as refused:
        refuse_other_shapes(long().drop("time"), long()["time"].to_numpy())
    assert refused.value.told(options=True).endswith("--long sensor,value")


def test_a_long_table_with_more_columns() -> None:
    odd = long().with_columns(quality=pl.lit(192), unit=pl.lit("bar"))
    assert shape(odd) == Layout((), "sensor", "value", 3)
    codes = long().with_columns(sensor=pl.col("sensor").rank("dense"))
    assert shape(codes) == Layout((), "sensor", "value", 3)


def test_a_keyed_table() -> None:
    for frame in (keyed(), keyed().sort("machine", "time")):
        assert shape(frame) == Layout(("machine",), count=4)
    numbers = keyed().with_columns(unit_no=pl.col("machine").str.tail(1).cast(pl.Int64))
    assert shape(numbers.drop("machine")) == Layout(("unit_no",), count=4)
    with pytest.raises(InputError, match=r"by='machine'$"):
        refuse_other_shapes(keyed().drop("time"), keyed()["time"].to_numpy())


def test_a_keyed_table_whose_machines_report_at_their_own_times() -> None:
    shift = pl.col("machine").str.tail(1).cast(pl.Int64) * 13
    woven = keyed().with_columns(pl.col("time") + pl.duration(seconds=shift)).sort("time")
    assert woven["time"].is_unique().all()
    assert shape(woven.rename({"machine": "tag"})) == Layout(("tag",), count=4)


def test_a_keyed_table_with_one_channel() -> None:
    one = keyed().select("time", "machine", "flow")
    assert shape(one) == Layout(("machine",), count=4)


def test_a_keyed_long_table() -> None:
    both = keyed().unpivot(index=["time", "machine"], variable_name="tag", value_name="y")
    found = shape(both)
    assert found == Layout(("machine",), "tag", "y", 3)
    assert spelt(found.refusal()).endswith("long='tag,y' and by='machine'")


def test_machines_without_a_time() -> None:
    assert recognise(keyed().drop("time"), None) == Layout(("machine",), count=4)


def test_times_that_come_twice_without_a_key_are_no_shape() -> None:
    twice = pl.concat([wide(), wide(seed=1)]).sort("time")
    assert shape(twice) is None


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
