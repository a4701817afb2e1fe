"""Executors of a fleet: this process, several processes, or a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import polars as pl

from vace_ad.errors import ConfigError
from vace_ad.fleet.dataset import each_machine
from vace_ad.fleet.entities import machines_in
from vace_ad.fleet.task import Outcome, Task, compute, failures


class AnyExecutor(Protocol):
    """Something that does tasks."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Yield each task with what came of it, in the order in which they end."""


@dataclass(frozen=True)
class Executor:
    """Tasks of machines whose rows are in files or in memory."""

    jobs: int = 1  # processes at a time
    cluster: str | None = None  # address of a Ray cluster, "local" for one on this machine
    threads: int | None = None  # of each task; None shares the cores among the jobs

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Yield each task with what came of it, in the order in which they end."""
        if self.jobs < 1:
            raise ConfigError(f"jobs={self.jobs}: must be 1 or more")
        if self.cluster is not None:
            from vace_ad.executors.cluster import run_ray

            address = None if self.cluster == "local" else self.cluster
            return run_ray(tasks, compute, failures, self.threads or 1, address)
        if self.jobs == 1:
            return ((task, compute(task)) for task in tasks)  # no process to start
        from vace_ad.executors.local import run_local

        threads = self.threads or max(1, _cores() // self.jobs)
        return run_local(tasks, compute, failures, self.jobs, threads)


@dataclass(frozen=True)
class DatasetExecutor:
    """Tasks of machines whose rows are in a Ray Dataset: they are done where the rows are."""

    data: Any
    by: Sequence[str]

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Yield each task with what came of it."""
        known = {
            task.entity.name: replace(task, entity=replace(task.entity, frame=None))
            for task in tasks
        }
        work = partial(_compute_rows, tasks=known, by=tuple(self.by))
        yield from each_machine(self.data, self.by, len(tasks), work)


def _compute_rows(
    rows: pl.DataFrame, tasks: dict[str, Task], by: Sequence[str]
) -> tuple[Task, Outcome] | None:
    """The task of the machine that has these rows, where there is one."""
    for entity in machines_in(rows, by):
        if (task := tasks.get(entity.name)) is not None:
            return task, compute(replace(task, entity=entity))
    return None


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
