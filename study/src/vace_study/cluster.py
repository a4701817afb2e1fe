"""Benchmark tasks on a Ray cluster: the same tasks and rows as on one machine.

Every node needs this package and sees the data folder under the same path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vace_ad.executors import cluster
from vace_study.tasks import Result, Task, compute, failures


def run_ray(
    tasks: Sequence[Task], threads: int, address: str | None = None
) -> Iterator[tuple[Task, list[Result]]]:
    """Yield each task with its results, in the order in which they end."""
    return cluster.run_ray(tasks, compute, failures, threads, address)
