"""Threads for work that comes in independent parts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def workers() -> Iterator[Executor]:
    """As many threads as BLAS would use, while BLAS itself uses one in each.

    Threads that each work on their own part are quicker than one product at a time shared by all
    threads, above all on a busy machine, and what they compute does not depend on their number.
    OMP_NUM_THREADS and threadpoolctl limits of the caller hold here too.
    """
    controller = ThreadpoolController().select(user_api="blas")
    counts = [library["num_threads"] for library in controller.info()]
    threads = max(counts) if counts else os.cpu_count() or 1
    with controller.limit(limits=1), ThreadPoolExecutor(threads, "vace") as executor:
        yield executor
