"""The same tasks on Ray: two nodes on this machine, one of them killed half-way."""

import sys
from dataclasses import replace

import pytest

from toys import make_folder
from vace_ad.errors import MissingExtraError
from vace_study.catalog import find_series
from vace_study.cluster import run_ray
from vace_study.runner import Engine, Plan, run
from vace_study.store import read_rows

SECONDS = ("fit_seconds", "score_seconds", "evaluate_seconds", "cpu_seconds")
TIMING = dict.fromkeys((*SECONDS, "peak_memory_mb"))


def test_without_ray_the_install_line_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vace-ad\[ray\]'"):
        next(run_ray([], threads=1))


@pytest.fixture
def two_nodes(monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed (extra ray)")
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 80_000_000},
    )
    second = cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


class KillsANode:
    """Progress that kills a node once a third of the tasks have ended."""

    def __init__(self, cluster, node):
        self.cluster, self.node, self.killed = cluster, node, False

    def start(self, tasks, remaining, rows):
        self.ended, self.total = 0, len(remaining)

    def update(self, task, rows):
        self.ended += 1
        if not self.killed and self.ended * 3 >= self.total:
            self.cluster.remove_node(self.node, allow_graceful=False)
            self.killed = True

    def stop(self):
        pass


@pytest.mark.filterwarnings("ignore")  # Ray's own, at start and at the loss of a node
def test_every_row_arrives_once_though_a_node_dies(two_nodes, tmp_path):
    series = find_series(make_folder(tmp_path / "data"))
    plan = Plan(series, ["toys:Slow"], ("tsb-ad", "test-only"), 2)
    killer = KillsANode(*two_nodes)
    rows = run(plan, tmp_path / "ray", Engine("ray"), killer)
    assert killer.killed
    assert {row.error for row in rows} == {None}
    assert (tmp_path / "ray" / "rows.jsonl").read_bytes().count(b"\n") == len(rows) == 16
    local = run(plan, tmp_path / "local", Engine(threads=1))
    assert [replace(row, **TIMING) for row in rows] == [replace(row, **TIMING) for row in local]
    assert len(read_rows(tmp_path / "ray")) == 16
