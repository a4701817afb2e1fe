"""A fleet on Ray's own test cluster of two nodes, one of which dies in the middle."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.machines import fleet
from fleet.test_runner import job, signature
from vace_ad.errors import MissingExtraError
from vace_ad.fleet.executor import Executor
from vace_ad.fleet.runner import run_fleet

# A node that was killed is missed after a second; one that is slow to answer has as long as ever.
HEALTH = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 200}


def test_without_ray_the_install_line_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    fleet(2).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(MissingExtraError, match=r"pip install 'vace-ad\[ray\]'"):
        run_fleet(
            [tmp_path / "t.parquet"],
            job(tmp_path / "o"),
            tmp_path / "o",
            executor=Executor(cluster="local"),
        )


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    """Ray's own test cluster, of one node; this process is connected to it."""
    ray = pytest.importorskip("ray", reason="ray is not installed (extra ray)")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        tests = str(Path(__file__).parents[1])
        paths = filter(None, [tests, os.environ.get("PYTHONPATH")])
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 1,
                "object_store_memory": 80_000_000,
                "include_dashboard": False,
                "_system_config": HEALTH,
            },
        )
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.filterwarnings("ignore")  # Ray's own, at start and at the loss of a node
def test_a_lost_node_costs_no_result(tmp_path: Path, ray_cluster: Any) -> None:
    fleet(6).write_parquet(tmp_path / "t.parquet")
    second = ray_cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    killed = []

    def watch(stage: str, done: int, total: int) -> None:
        if done == 2:
            ray_cluster.remove_node(second, allow_graceful=False)
            killed.append(done)

    out = tmp_path / "ray"
    far = run_fleet(
        [tmp_path / "t.parquet"],
        job(out),
        out,
        executor=Executor(cluster="local"),
        progress=watch,
    )
    assert killed == [2]
    near = run_fleet([tmp_path / "t.parquet"], job(tmp_path / "near"), tmp_path / "near")
    assert signature(far.rows) == signature(near.rows)
    assert {row.status for row in far.rows} == {"ok"}
