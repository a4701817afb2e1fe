import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.live.records import (
    BadRecordError,
    Names,
    from_csv,
    from_influx,
    from_json,
    from_object,
    read_name,
    read_time,
)

NOON = 1_767_614_400 * 10**9  # 2026-01-05 12:00 UTC


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-05T12:00:00Z", "2026-01-05 12:00:00", "2026-01-05T13:00:00+01:00",
        1767614400, 1767614400.0, "1767614400", 1767614400000, 1767614400000000, NOON, str(NOON),
    ],
)  # fmt: skip
def test_times(value):
    assert read_time(value) == NOON


def test_nanoseconds_are_exact():
    assert read_time(NOON + 1) == NOON + 1
    assert read_time("2026-01-05T12:00:00.000001Z") == NOON + 1000


@pytest.mark.parametrize("value", ["soon", "", None, 12, [], {}, True, "nan", "1e400", math.inf])
def test_no_times(value):
    with pytest.raises(BadRecordError, match="not a time"):
        read_time(value)


@pytest.mark.parametrize(
    "name", ["", "a\nb", "x" * 201, "\x1b[31m", "a\u202eb", "\ud800", None, 1.5, []]
)
def test_hostile_names(name):
    with pytest.raises(BadRecordError):
        read_name(name, "an entity")


def test_wide_and_long_json():
    names = Names()
    wide = '{"time": 1767614400, "entity": "p1", "flow": 1.5, "level": null}'
    (one,) = from_json(wide, names)
    assert (one.entity, one.time, one.values["flow"]) == ("p1", NOON, 1.5)
    assert math.isnan(one.values["level"])
    long = '[{"time": 1767614400, "entity": "p1", "channel": "flow", "value": "2"}]'
    assert from_json(long, names)[0].values == {"flow": 2.0}
    inner = {"time": 1767614400, "values": {"flow": True}}
    assert from_object(inner, Names(fixed="p")).values == {"flow": 1.0}


def test_csv():
    text = "time,entity,flow,level\n2026-01-05T12:00:00Z,p1,1.5,\n\n"
    (one,) = from_csv(text.splitlines(), Names())
    assert (one.entity, one.time) == ("p1", NOON)
    with pytest.raises(BadRecordError, match="no column 'time'"):
        list(from_csv(["when,flow"], Names()))
    with pytest.raises(BadRecordError, match="got 3 cells, the header has 2"):
        list(from_csv(["time,flow", "1767614400,1,2"], Names(fixed="p")))


def test_influx():
    line = r'pumps,entity=p\ 1,site=a flow=1.5,n=3i,on=true,mode="x, y=1" 1767614400000000000'
    (one,) = from_influx(line, Names(), 0)
    assert one == ("p 1", NOON, {"a.flow": 1.5, "a.n": 3.0, "a.on": 1.0})
    assert from_influx("cpu usage=2 1767614400", Names(), 0, 10**9)[0].time == NOON
    assert from_influx("cpu usage=2", Names(), 7) == [("cpu", 7, {"usage": 2.0})]
    assert from_influx("# a comment", Names(), 7) == []


@given(st.text())
def test_nothing_from_the_wire_breaks_the_parsers(text):
    for parse in (
        lambda: from_json(text, Names(), 0),
        lambda: list(from_csv(["time,entity,a", text], Names())),
        lambda: from_influx(text, Names(), 0),
    ):
        with suppress(BadRecordError):
            parse()
