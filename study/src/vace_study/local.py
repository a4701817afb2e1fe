"""Benchmark tasks in processes on this machine; each process serves one method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from vace_ad.executors import local
from vace_study.tasks import Result, Task, compute, failures


def run_local(
    tasks: Sequence[Task], jobs: int, threads: int, stop_after: float = math.inf
) -> Iterator[tuple[Task, list[Result]]]:
    """Yield each task with its results, in the order in which they end.

    No task starts later than `stop_after` seconds from now; those under way are waited for. A
    process serves one method, so that its memory is that method's.
    """
    return local.run_local(
        tasks, compute, failures, jobs, threads, stop_after, kind=lambda task: task.method
    )
