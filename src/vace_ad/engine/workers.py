"""Threads for independent pieces of work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


def thread_count() -> int:
    """As many threads as BLAS would use.

    So OMP_NUM_THREADS, the processors this process may run on, and limits set by threadpoolctl
    (as joblib does in its workers) all hold for us too.
    """
    return _count(ThreadpoolController().select(user_api="blas"))


def pool() -> Executor:
    """Threads of this process that stay, for small parts of work."""
    global _pool
    if _pool is None or _pool[0] != os.getpid():  # a forked process has none of its parent's
        _pool = (os.getpid(), ThreadPoolExecutor(thread_count(), "vace"))
    return _pool[1]


_pool: tuple[int, Executor] | None = None


@contextmanager
def workers() -> Iterator[Executor]:
    """That many threads, while BLAS itself uses one in each.

    Threads that each work on their own part are quicker than one product at a time shared by all
    threads, above all on a busy machine, and what they compute does not depend on their number.
    """
    controller = ThreadpoolController().select(user_api="blas")
    threads = _count(controller)
    with controller.limit(limits=1), ThreadPoolExecutor(threads, "vace") as executor:
        yield executor


def _count(controller: ThreadpoolController) -> int:
    counts = [library["num_threads"] for library in controller.info()]
    return max(counts) if counts else os.cpu_count() or 1
