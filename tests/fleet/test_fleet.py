from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fleet.machines import QUICK, fleet, machine
from vace_ad import VACE
from vace_ad.alarms import Budget
from vace_ad.app.loading import Reading, load_frame
from vace_ad.app.run import Alarming, detect_with
from vace_ad.app.training import Training
from vace_ad.errors import InputError, NotFittedError
from vace_ad.fleet.fleet import Fleet
from vace_ad.frames.read import ReadReport

NORMAL, NEW = fleet(faulty=()), fleet(faulty=(1, 2))


@pytest.fixture(scope="module")
def fitted() -> Fleet:
    return Fleet(by="machine", **QUICK).fit(NORMAL)


def test_faults_are_found_and_ranked(fitted: Fleet) -> None:
    found = fitted.detect(NEW, budget=Budget(1, "week"))
    overview = found.overview
    assert isinstance(overview, pl.DataFrame)
    assert set(overview["machine"][:2]) == {"m1", "m2"}
    assert overview["sensors"][0].startswith("pressure")
    both = found.incidents.filter(pl.col("machines") == 2)
    assert both.height == 1
    assert set(both["names"][0].split(", ")) == {"m1", "m2"}
    assert "incidents on" in repr(found)


def test_the_same_events_as_one_by_one(fitted: Fleet) -> None:
    found = {row.machine: row for row in fitted.detect(NEW, budget=Budget(4, "week")).rows}
    for i in range(4):
        alone = VACE(**QUICK).fit(machine(i))
        report = ReadReport("alone", "table", 0, 0, "")
        loaded = load_frame(machine(i, fault=i in (1, 2)), report, Reading())
        run = detect_with(alone, loaded, Training([], None, ""), Alarming(Budget(1, "week")))
        rows = [(event["start"], event["end"]) for event in found[f"m{i}"].events]
        assert rows == [(event.start, event.end) for event in run.found.events]


@pytest.mark.parametrize("kind", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_other_kinds_of_table(fitted: Fleet, kind) -> None:
    overview = fitted.detect(kind(NEW)).overview
    assert isinstance(overview, pd.DataFrame | pa.Table)
    names = (
        overview["machine"].to_pylist() if isinstance(overview, pa.Table) else [*overview.machine]
    )
    assert set(names[:2]) == {"m1", "m2"}


def test_a_pandas_index_of_times(fitted: Fleet) -> None:
    rows = fitted.detect(NEW.to_pandas().set_index("time")).rows
    assert rows[0].events[0]["start_time"].startswith("2026-01-01")


def test_machines_with_few_rows_borrow(fitted: Fleet) -> None:
    short = machine(7, rows=40).with_columns(machine=pl.lit("small"))
    mixed = pl.concat([NORMAL, short])
    again = Fleet(by="machine", **QUICK).fit(pl.concat([NORMAL, short.head(10)]))
    assert "small" in again.failures_
    status = {row.machine: row.status for row in again.detect(mixed).rows}
    assert status == {"m0": "ok", "m1": "ok", "m2": "ok", "m3": "ok", "small": "borrowed"}
    one = pl.concat([NORMAL, short.head(1)])
    row = next(row for row in again.detect(one).rows if row.machine == "small")
    assert row.status == "short"
    assert "1 rows came" in (row.error or "")


def test_one_model_for_all() -> None:
    shared = Fleet(by="machine", shared=True, **QUICK).fit(NORMAL)
    assert shared.models_ == {}
    assert {row.status for row in shared.detect(NEW).rows} == {"ok"}


def test_several_keys() -> None:
    keys = NORMAL.with_columns(site=pl.lit("north"))
    rows = Fleet(by=["site", "machine"], **QUICK).fit(keys).detect(keys).rows
    assert {row.machine for row in rows} == {f"north / m{i}" for i in range(4)}


def test_bad_tables(fitted: Fleet) -> None:
    with pytest.raises(NotFittedError):
        Fleet(by="machine").detect(NEW)
    with pytest.raises(InputError, match="no column is called 'pump'"):
        Fleet(by="pump").fit(NORMAL)
    with pytest.raises(InputError, match="a fleet is a pandas, polars or Arrow table"):
        Fleet(by="machine").fit([[1, 2]])
    serial = pl.DataFrame({"machine": range(100_000), "a": 1.0})
    with pytest.raises(InputError, match="tells no machines apart"):
        fitted.detect(serial)
    lost = NEW.with_columns(
        machine=pl.when(pl.col("machine") == "m0").then(None).otherwise(pl.col("machine"))
    )
    assert len(fitted.detect(lost).rows) == 3
    other = fitted.detect(NEW.drop("flow")).rows
    assert {row.status for row in other} == {"failed"}
