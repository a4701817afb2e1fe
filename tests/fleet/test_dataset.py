"""A fleet in a Ray Dataset, on a Ray instance of this machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fleet.machines import QUICK, fleet
from vace_ad.alarms import Budget
from vace_ad.errors import InputError
from vace_ad.fleet import executor
from vace_ad.fleet.executor import is_dataset, most_rows
from vace_ad.fleet.fleet import Fleet

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, at start


@pytest.fixture(autouse=True)
def few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray starts a process for each part."""
    monkeypatch.setattr(executor, "_FEW", 1)
    monkeypatch.setattr(executor, "_MANY", 2)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray", reason="ray is not installed (extra ray)")
    with pytest.MonkeyPatch.context() as patch:  # its processes have it from here
        paths = filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.setenv("OMP_NUM_THREADS", "1")
        found.init(
            address="local",  # not one that another test has started
            num_cpus=2,
            object_store_memory=100_000_000,
            include_dashboard=False,
            log_to_driver=False,
        )
        yield found
        found.shutdown()


def test_the_same_answers_as_from_a_table(ray: Any) -> None:
    normal, new = fleet(3, faulty=()), fleet(3, faulty=(1, 2))
    lost = new.head(5).with_columns(machine=pl.lit(None, dtype=pl.String))
    near = Fleet(by="machine", **QUICK).fit(normal)
    far = Fleet(by="machine", **QUICK).fit(ray.data.from_arrow(normal.to_arrow()))
    assert sorted(far.models_) == sorted(near.models_)
    expected = near.detect(new, budget=Budget(4, "week"))
    data = ray.data.from_arrow(pl.concat([new, lost]).to_arrow()).repartition(2)
    assert is_dataset(data)
    assert not is_dataset(new)
    found = far.detect(data, budget=Budget(4, "week"))
    assert [(row.machine, row.status, row.events) for row in found.rows] == [
        (row.machine, row.status, row.events) for row in expected.rows
    ]
    assert found.overview["machine"].to_pylist() == expected.overview["machine"].to_list()
    with pytest.raises(InputError, match="no column is called 'pump'"):
        Fleet(by="pump").fit(data)


def test_rows_come_back_from_few_machines_however_alike_they_are() -> None:
    counts = {(site, f"m{i:04}"): 500 for i in range(1000) for site in ("a", "b")}
    counts["c", "m0"] = 20
    assert len(most_rows(counts, None, 12)) == 12
    chosen = most_rows(counts, 0, 12)
    assert Counter(site for site, _ in chosen) == {"a": 12, "b": 12, "c": 1}
    counts["b", "m0999"] = 501
    assert ("b", "m0999") in most_rows(counts, None, 1)


def test_groups_of_a_dataset(ray: Any) -> None:
    site = pl.when(pl.col("machine") < "m2").then(pl.lit("north")).otherwise(pl.lit("south"))
    normal = fleet(faulty=()).with_columns(site=site)
    near = Fleet(by=["site", "machine"], group="site", **QUICK).fit(normal)
    far = Fleet(by=["site", "machine"], group="site", **QUICK)
    far.fit(ray.data.from_arrow(normal.to_arrow()))
    assert sorted(far.groups_) == ["north", "south"]
    learned = {name: one.model_.digest for name, one in far.groups_.items()}
    assert learned == {name: one.model_.digest for name, one in near.groups_.items()}
