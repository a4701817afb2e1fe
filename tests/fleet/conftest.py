"""One Ray for all tests of fleets that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# A node that was killed is missed after a second; one that is slow to answer has as long as ever.
HEALTH = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 200}


@pytest.fixture(scope="session")
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
                "num_cpus": 2,
                "object_store_memory": 100_000_000,
                "include_dashboard": False,
                "_system_config": HEALTH,
            },
        )
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
        ray.shutdown()
        cluster.shutdown()
