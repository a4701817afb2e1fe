"""Tasks in processes on this machine, one task a process at a time.

Each process has its own thread limit, set before NumPy loads, so that jobs do not fight for the
same cores, keeps memory for its next task, and serves tasks of one kind. A process that dies
(memory, a crash in a library) fails its own task only, and is replaced. If this process is killed,
the workers end too.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import TypeVar

T = TypeVar("T")  # a task
R = TypeVar("R")  # what comes of it

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
# Bytes for glibc's allocator. By default it returns arrays to the system as soon as they are freed;
# requesting new pages for every array takes about 5 % of the time.
_KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**22), "MALLOC_TRIM_THRESHOLD_": str(2**26)}


def thread_limits(threads: int) -> dict[str, str]:
    """The environment that holds numerical libraries to `threads` threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def worker_environment(threads: int) -> dict[str, str]:
    """The environment of a process that serves one task after another."""
    return {**_KEPT_MEMORY, **thread_limits(threads)}


def run_local(
    tasks: Iterable[T],
    compute: Callable[[T], R],
    failures: Callable[[T, str], R],
    jobs: int,
    threads: int,
    stop_after: float = math.inf,
    kind: Callable[[T], object] = lambda task: None,
) -> Iterator[tuple[T, R]]:
    """Yield each task with its results, in the order in which they end.

    `compute` is a function of a module, as it goes to other processes; `failures` gives the
    results of a task whose process died. No task starts later than `stop_after` seconds from
    now; those under way are waited for. A process serves tasks of one `kind`.
    """
    waiting = iter(tasks)
    deadline = monotonic() + stop_after
    busy: dict[Connection, tuple[_Worker, T]] = {}

    def give(worker: _Worker | None) -> None:
        """Hand the next task to this worker, or to a new one where it cannot take it."""
        task = next(waiting, None) if monotonic() < deadline else None
        if worker and (task is None or worker.kind != kind(task)):
            worker.dismiss()
            worker = None
        if task is not None:
            worker = worker or _Worker(kind(task), threads, compute)
            with suppress(BrokenPipeError, ConnectionResetError):  # dead: seen when it is read
                worker.pipe.send(task)
            busy[worker.pipe] = worker, task

    try:
        for _ in range(jobs):
            give(None)
        while busy:
            for pipe in connection.wait(list(busy)):
                assert isinstance(pipe, Connection)
                worker, task = busy.pop(pipe)
                try:
                    results, free = pipe.recv(), worker
                except (EOFError, ConnectionResetError):
                    results, free = failures(task, worker.post_mortem()), None
                yield task, results
                give(free)
    finally:
        for worker, _ in busy.values():
            worker.kill()


class _Worker:
    """A process that serves one kind of task, and the pipe to it."""

    def __init__(self, kind: object, threads: int, compute: Callable[[T], R]) -> None:
        self.kind = kind
        context = get_context("spawn")  # nothing inherited: no lock, no loaded library
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_serve, args=(theirs, compute), daemon=True
        )
        with _environment(worker_environment(threads)):
            self.process.start()
        theirs.close()

    def dismiss(self) -> None:
        """Let it end; it waits for a task and finds that the pipe is closed."""
        self.pipe.close()
        self.process.join()

    def kill(self) -> None:
        """End it in the middle of its task."""
        self.process.kill()
        self.dismiss()

    def post_mortem(self) -> str:
        """Why the process ended, in words."""
        self.dismiss()
        code = self.process.exitcode
        cause = f"was ended by signal {-code}" if code and code < 0 else f"ended with status {code}"
        return f"the process of this task {cause}; out of memory, or a crash in a library"


def _serve(pipe: Connection, compute: Callable[[T], R]) -> None:
    """Compute tasks until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(compute(task))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Variables that a child started meanwhile inherits."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
