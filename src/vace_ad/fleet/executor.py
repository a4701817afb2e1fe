"""Executors of a fleet: this process, several processes, a Ray cluster, or where a Dataset lies.

Of a Ray Dataset each machine's rows go to one task, and only its result comes back.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import polars as pl

from vace_ad.errors import ConfigError, InputError
from vace_ad.fleet.entities import Machine, machines_in
from vace_ad.fleet.task import Outcome, Task, compute, failures
from vace_ad.frames.sources import refuse_no_key


class AnyExecutor(Protocol):
    """Runs tasks."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Yield each task with its result, in order of completion."""


@dataclass(frozen=True)
class Executor:
    """Tasks of machines whose rows are in files or in memory."""

    jobs: int = 1  # processes at a time
    cluster: str | None = None  # address of a Ray cluster, "local" for one on this machine
    threads: int | None = None  # of each task; None shares the cores among the jobs

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Yield each task with its result, in order of completion."""
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
        """Yield each task with its result."""
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


# Into how many parts rows are sorted: each is a task, and is in memory whole.
_FEW, _MANY = 4, 200  # of counts; of rows, at most
Keys = tuple[Any, ...]  # a machine's values in the columns that name it
Work = Callable[["pl.DataFrame"], Any]  # of one machine's rows, with the columns that name it


def is_dataset(data: Any) -> bool:
    """Whether this is a Ray Dataset; Ray is not imported to find out."""
    kind = type(data)
    return kind.__module__.startswith("ray.data") and hasattr(data, "groupby")


def count_rows(data: Any, by: Sequence[str]) -> dict[Keys, int]:
    """The number of rows of each machine; refuses columns that identify none."""
    missing = sorted(set(by) - set(data.columns()))
    if missing:
        raise InputError(f"no column is called {missing[0]!r}; there are {data.columns()}")
    groups = data.groupby(list(by), num_partitions=_FEW).count().take_all()
    counts = {tuple(one[name] for name in by): int(one["count()"]) for one in groups}
    named = {keys: count for keys, count in counts.items() if None not in keys}
    refuse_no_key(list(named.values()), by)
    return named


def dataset_machines(
    data: Any, by: Sequence[str], fetch: int | None, machines: int
) -> list[Machine]:
    """The machines of a Dataset, in order of name.

    With `fetch`, the key that makes groups or -1 for none, as many as `machines` with the most
    rows, of all and of each group, have them here: a shared model is learned from those.
    """
    counts = count_rows(data, by)
    frames: dict[str, Machine] = {}
    if fetch is not None:
        wanted = most_rows(counts, None if fetch < 0 else fetch, machines)
        work = partial(_only, wanted=wanted, by=tuple(by))
        frames = {one.name: one for one in each_machine(data, by, len(counts), work)}
    found = (_named(keys, by, count) for keys, count in counts.items())
    every = [frames.get(one.name, one) for one in found if one is not None]
    return sorted(every, key=lambda one: one.name)


def _named(keys: Keys, by: Sequence[str], rows: int) -> Machine | None:
    """The machine of these keys, spelt as in its rows; None where they name nothing."""
    if any(str(key).strip() == "" for key in keys):
        return None
    one = pl.DataFrame({name: [key] for name, key in zip(by, keys, strict=True)})
    return replace(machines_in(one, by)[0], rows=rows, frame=None)


def _only(rows: pl.DataFrame, wanted: set[Keys], by: Sequence[str]) -> Machine | None:
    """A machine with its rows, where they are wanted."""
    return machines_in(rows, by)[0] if rows.select(by).row(0) in wanted else None


def most_rows(counts: dict[Keys, int], group: int | None, machines: int) -> set[Keys]:
    """So many machines with the most rows, of all and of each value of the key `group`.

    By their keys: a number of rows would name whole fleets whose machines are equally long.
    """
    ordered = sorted(counts, key=lambda keys: (-counts[keys], str(keys)))
    chosen = set(ordered[:machines])
    if group is None:
        return chosen
    seen: Counter[Any] = Counter()
    for keys in ordered:
        seen[keys[group]] += 1
        if seen[keys[group]] <= machines:
            chosen.add(keys)
    return chosen


def each_machine(data: Any, by: Sequence[str], machines: int, work: Work) -> list[Any]:
    """What `work` gives for each machine, in no order; None is left out."""
    import ray

    names = list(by)
    shared = ray.put(work)  # its models travel once to each node, not with every task

    def group(table: Any) -> dict[str, list[bytes]]:
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        frame = frame.drop_nulls(names)  # rows that name no machine are a group of their own
        result = ray.get(shared)(frame) if frame.height else None
        return {"result": [pickle.dumps(result)]}

    parted = data.groupby(list(by), num_partitions=min(_MANY, machines))
    done = parted.map_groups(group, batch_format="pyarrow").take_all()
    # Only bytes that the tasks above have just written are unpickled.
    found = [pickle.loads(one["result"]) for one in done]
    return [one for one in found if one is not None]
