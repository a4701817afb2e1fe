"""Tasks on a Ray cluster: the same tasks and results as on one machine.

Every node needs this package and sees the data under the same paths. Ray repeats a task whose
node died; this process alone keeps results, one set for each task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from vace_ad.errors import needs
from vace_ad.executors.local import worker_environment

T = TypeVar("T")  # a task
R = TypeVar("R")  # what comes of it

_RETRIES = 3  # of a task whose process or node died
_AT_ONCE = 1000  # tasks that Ray knows of at a time


def run_ray(
    tasks: Iterable[T],
    compute: Callable[[T], R],
    failures: Callable[[T, str], R],
    threads: int,
    address: str | None = None,
) -> Iterator[tuple[T, R]]:
    """Yield each task with its results, in the order in which they end.

    Without an address and a cluster that Ray finds by itself, one on this machine is started.
    """
    with needs("ray", "ray", "the engine ray"):
        import ray
    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    try:
        remote = ray.remote(
            num_cpus=threads,
            max_retries=_RETRIES,
            runtime_env={"env_vars": {**worker_environment(threads), "PYTHONPATH": _search_path()}},
        )(compute)
        left = iter(tasks)
        waiting: dict[Any, T] = {remote.remote(task): task for task in islice(left, _AT_ONCE)}
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            for reference in done:
                task = waiting.pop(reference)
                try:
                    results = ray.get(reference)
                except ray.exceptions.RayError as error:
                    results = failures(task, f"Ray gave the task up: {error}")
                yield task, results
                waiting |= {remote.remote(task): task for task in islice(left, 1)}
    finally:
        if ours:
            ray.shutdown()


def _search_path() -> str:
    """This process's own folders of modules, where detectors of the user's may lie.

    What the interpreter and its packages brought along is left out: each node has its own.
    """
    brought = (sys.prefix, sys.base_prefix)
    ours = [path or os.getcwd() for path in sys.path if not path.startswith(brought)]
    return os.pathsep.join(filter(None, [*ours, os.environ.get("PYTHONPATH")]))
