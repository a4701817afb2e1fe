"""A run: which rows are asked for, which are there, and the work in between."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vace_ad.alarms.budget import Budget
from vace_ad.errors import ConfigError
from vace_study.baselines import expand, resolve
from vace_study.catalog import Entry
from vace_study.protocols import check_protocols
from vace_study.rows import Key, Row
from vace_study.store import Store
from vace_study.tasks import Result, Task

if TYPE_CHECKING:
    from vace_study.progress import Progress


@dataclass(frozen=True)
class Plan:
    """What a run is to hold."""

    series: Sequence[Entry]
    methods: Sequence[str]  # names, groups of names, or package.module:Name
    protocols: tuple[str, ...] = ("tsb-ad",)
    seeds: int = 1  # 0, 1, …; a method without randomness runs with seed 0 alone
    keep_scores: bool = False
    largest_first: bool = True  # packs jobs well; else the costly ones wait, for a run with a limit
    budget: str | None = None  # at which alarms are judged
    causes: str | None = None  # file or folder of root causes

    def tasks(self) -> list[Task]:
        """Every task: by seed, then by method, then by size of the series."""
        check_protocols(self.protocols)
        if self.seeds < 1:
            raise ConfigError(f"seeds={self.seeds}: must be 1 or more")
        if self.budget is not None and Budget.of(self.budget).per != "rows":
            raise ConfigError(
                f"a budget of {self.budget!r} came; the series have no time: write it as "
                "'1 in 10000 rows'"
            )
        methods = [(name, resolve(name).seeded) for name in expand(self.methods)]
        by_size = sorted(self.series, key=lambda entry: entry.size, reverse=self.largest_first)
        return [
            Task(
                method=name,
                path=str(entry.path.resolve()),
                split=entry.split,
                seed=seed,
                protocols=self.protocols,
                size=entry.size,
                keep_scores=self.keep_scores,
                budget=self.budget,
                causes=self.causes,
            )
            for seed in range(self.seeds)
            for name, seeded in methods
            if seeded or seed == 0
            for entry in by_size
        ]


@dataclass(frozen=True)
class Engine:
    """Where tasks run."""

    kind: Literal["local", "ray"] = "local"
    jobs: int = 1  # processes of this machine
    threads: int | None = None  # of each task; None shares the cores among the jobs
    address: str | None = None  # of a Ray cluster; None starts one here
    stop_after: float = inf  # seconds; no local task starts later

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, list[Result]]]:
        """Yield each task with its results, in the order in which they end."""
        if self.jobs < 1:
            raise ConfigError(f"jobs={self.jobs}: must be 1 or more")
        if self.kind == "local":
            from vace_study.local import run_local

            threads = self.threads or max(1, _cores() // self.jobs)
            return run_local(tasks, self.jobs, threads, self.stop_after)
        if self.stop_after < inf:
            raise ConfigError("stop_after needs the local engine: Ray gets all tasks at once")
        from vace_study.cluster import run_ray

        return run_ray(tasks, self.threads or 1, self.address)


def run(
    plan: Plan,
    folder: str | Path,
    engine: Engine | None = None,
    progress: Progress | None = None,
    retry_failed: bool = False,
) -> list[Row]:
    """Compute what the folder does not hold yet; return the rows that the plan asks for.

    They are fewer than that only where the engine stopped early.
    """
    tasks = plan.tasks()
    with Store(folder) as store:
        _refuse_other_settings(tasks, store.rows)
        open_tasks = _remaining(tasks, store.rows, retry_failed)
        if progress:
            progress.start(tasks, open_tasks, store.rows)
        finish: Callable[[], None] = progress.stop if progress else lambda: None
        try:
            for task, results in (engine or Engine()).run(open_tasks) if open_tasks else ():
                for result in results:
                    _keep_scores(Path(folder), result)
                store.append([result.row for result in results], replace=retry_failed)
                if progress:
                    progress.update(task, [result.row for result in results])
        finally:
            finish()
        return [store.rows[key] for task in tasks for key in task.keys if key in store.rows]


def scores_path(folder: str | Path, key: Key) -> Path:
    """Where the scores of a row are kept."""
    method = key.method.replace(":", "@")  # no colon: not a name on every system
    return Path(folder) / "scores" / key.protocol / method / f"{key.series}.seed{key.seed}.npy"


def _remaining(tasks: Sequence[Task], rows: dict[Key, Row], retry_failed: bool) -> list[Task]:
    """The tasks, or the part of them, whose rows are not there yet."""

    def missing(key: Key) -> bool:
        row = rows.get(key)
        return row is None or (retry_failed and row.status == "failed")

    narrowed = (
        replace(task, protocols=tuple(key.protocol for key in task.keys if missing(key)))
        for task in tasks
    )
    return [task for task in narrowed if task.protocols]


def _refuse_other_settings(tasks: Sequence[Task], rows: dict[Key, Row]) -> None:
    """One folder, one configuration a method: means over two of them would mean nothing."""
    hashes = {name: resolve(name).config_hash for name in {task.method for task in tasks}}
    for row in rows.values():
        expected = hashes.get(row.method, row.config)
        if row.config != expected:
            raise ConfigError(
                f"the run holds rows of {row.method} with settings {row.config}, the method now "
                f"has settings {expected}: a setting or the version of its code has changed; use "
                "another folder for the new ones"
            )


def _keep_scores(folder: Path, result: Result) -> None:
    """Write a row's scores beside the run, whole or not at all, before its row."""
    if result.scores is None:
        return
    import numpy as np

    path = scores_path(folder, result.row.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    with partial.open("wb") as file:
        np.save(file, result.scores)
    partial.replace(path)


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
