from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fleet.machines import QUICK, START, fleet, machine
from fleet.test_runner import job
from vace_ad import VACE
from vace_ad.alarms import Budget
from vace_ad.app.loading import load_frame
from vace_ad.app.run import Alarming, TrainingRows, detect_with
from vace_ad.errors import ConfigError, InputError, NotFittedError
from vace_ad.fleet.fleet import Fleet
from vace_ad.fleet.runner import run_fleet
from vace_ad.frames.read import ReadReport
from vace_ad.frames.read_options import ReadOptions

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
        loaded = load_frame(machine(i, fault=i in (1, 2)), report, ReadOptions())
        run = detect_with(alone, loaded, TrainingRows([], None, ""), Alarming(Budget(1, "week")))
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
    assert "got 1 rows" in (row.error or "")


def test_one_model_for_all() -> None:
    shared = Fleet(by="machine", shared=True, **QUICK).fit(NORMAL)
    assert shared.models_ == {}
    assert {row.status for row in shared.detect(NEW).rows} == {"ok"}


def test_several_keys() -> None:
    keys = NORMAL.with_columns(site=pl.lit("north"))
    rows = Fleet(by=["site", "machine"], **QUICK).fit(keys).detect(keys).rows
    assert {row.machine for row in rows} == {f"north / m{i}" for i in range(4)}


SITES = {"m0": "north", "m1": "north", "m2": "south", "m3": "south", "m9": "west"}


def with_sites(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(site=pl.col("machine").replace_strict(SITES))


def test_a_model_for_each_group() -> None:
    small = machine(7, rows=60).with_columns(machine=pl.lit("m9"))
    few = with_sites(pl.concat([NORMAL, small.head(10)]))
    grouped = Fleet(by=["site", "machine"], group="site", **QUICK).fit(few)
    assert grouped.models_ == {}
    assert sorted(grouped.groups_) == ["north", "south"]
    assert grouped.groups_["north"].facts_["rows"] == 2 * NORMAL.height // 4
    assert "north: the shared model was learned from 2 machines" in grouped.notes_
    new = with_sites(pl.concat([NEW, small]))
    rows = {row.machine: row for row in grouped.detect(new, budget=Budget(1, "week")).rows}
    assert {row.status for row in rows.values()} == {"ok", "borrowed"}
    assert rows["west / m9"].status == "borrowed"
    assert rows["north / m1"].anomalies
    assert rows["south / m2"].anomalies
    alone = Fleet(by="machine", shared=True, **QUICK).fit(NORMAL.filter(pl.col("machine") < "m2"))
    found = alone.detect(NEW.filter(pl.col("machine") == "m1"), budget=Budget(1 / 5, "week"))
    assert found.rows[0].events == rows["north / m1"].events


def test_groups_give_the_events_of_the_command_line(tmp_path: Path) -> None:
    frames = with_sites(NORMAL), with_sites(NEW)
    for name, frame in zip(("normal", "new"), frames, strict=True):
        frame.write_parquet(tmp_path / f"{name}.parquet")
    out = tmp_path / "out"
    run = run_fleet(
        [tmp_path / "new.parquet"],
        job(out, by="site,machine"),
        out,
        group="site",
        train=tmp_path / "normal.parquet",
    )
    near = Fleet(by=["site", "machine"], group="site", **QUICK).fit(frames[0])
    found = near.detect(frames[1], budget=Budget(4, "week"))
    assert [(row.machine, row.events) for row in found.rows] == [
        (row.machine, row.events) for row in run.rows
    ]


@pytest.mark.parametrize(
    ("by", "more", "match"),
    [
        ("machine", {}, "group='site': must be"),
        (["machine", "line"], {}, "group='site': must be"),
        (["site", "machine"], {"shared": True}, "cannot be combined"),
    ],
)
def test_what_is_no_group(by: list[str], more: dict[str, bool], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        Fleet(by=by, group="site", **more, **QUICK).fit(with_sites(NORMAL))


def test_bad_tables(fitted: Fleet) -> None:
    with pytest.raises(NotFittedError):
        Fleet(by="machine").detect(NEW)
    with pytest.raises(InputError, match="no column is called 'pump'"):
        Fleet(by="pump").fit(NORMAL)
    with pytest.raises(InputError, match="a fleet is a pandas, polars or Arrow table"):
        Fleet(by="machine").fit([[1, 2]])
    serial = pl.DataFrame({"machine": range(100_000), "a": 1.0})
    with pytest.raises(InputError, match="does not identify machines"):
        fitted.detect(serial)
    lost = NEW.with_columns(
        machine=pl.when(pl.col("machine") == "m0").then(None).otherwise(pl.col("machine"))
    )
    assert len(fitted.detect(lost).rows) == 3
    other = fitted.detect(NEW.drop("flow")).rows
    assert {row.status for row in other} == {"failed"}


def test_a_machine_that_vanishes_is_told(fitted: Fleet) -> None:
    table = fleet(faulty=())
    gone = (pl.col("machine") == "m2") & (pl.col("time") >= START + np.timedelta64(800, "m"))
    found = fitted.detect(table.filter(~gone))
    told = found.overview.filter(pl.col("machine") == "m2").row(0, named=True)
    assert told["no_data"] == 1
    assert any("m2 since 2026-01-01 13:19" in note for note in found.run.notes)
