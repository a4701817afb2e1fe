"""A fleet run: which machines there are, which results are there, and the work in between.

A folder holds one run. Killed or finished, the same command goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from vace_ad.alarms import Budget
from vace_ad.app.loading import names_of
from vace_ad.app.results import writing
from vace_ad.caller import option
from vace_ad.errors import ConfigError, InputError
from vace_ad.fleet.entities import Entity, find_entities, folder_name
from vace_ad.fleet.incidents import Incident, find_incidents
from vace_ad.fleet.pooling import LEAST, kept_to_budget
from vace_ad.fleet.rows import MachineRow
from vace_ad.fleet.shared import FILE as SHARED
from vace_ad.fleet.shared import fit_shared
from vace_ad.fleet.task import REPORT, Job, Task, compute, failures
from vace_ad.frames.write import whole_file
from vace_ad.plain import plural
from vace_ad.progress import Progress, silent
from vace_ad.work.store import LineStore

PLAN, MODELS = "fleet.json", "models.json"
_PARTS, _NORMAL = ".parts", ".normal"
REPORTS = 200  # machines; of more, only those with events get a report, which is most of the disk


@dataclass(frozen=True)
class Engine:
    """Where machines are worked on."""

    kind: Literal["local", "ray"] = "local"
    jobs: int = 1
    threads: int | None = None  # of each task; None shares the cores among the jobs
    address: str | None = None  # of a Ray cluster

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, MachineRow]]:
        """Yield each task with its row, in the order in which they end."""
        if self.jobs < 1:
            raise ConfigError(f"jobs={self.jobs} came; it must be 1 or more")
        threads = self.threads or max(1, _cores() // self.jobs)
        if self.kind == "ray":
            from vace_ad.work.cluster import run_ray

            return run_ray(tasks, compute, failures, self.threads or 1, self.address)
        if self.jobs == 1:
            return ((task, compute(task)) for task in tasks)  # no process to start
        from vace_ad.work.local import run_local

        return run_local(tasks, compute, failures, self.jobs, threads)


@dataclass(frozen=True)
class FleetRun:
    """What a run gave."""

    rows: list[MachineRow]  # the most severe first, then those that failed
    incidents: list[Incident]
    notes: list[str] = field(default_factory=list)

    def count(self, status: str) -> int:
        """How many machines ended so."""
        return sum(row.status == status for row in self.rows)


def per_machine(budget: Budget, machines: int) -> Budget:
    """The part of a fleet's budget that falls to each machine.

    False alarms of machines add up, so that each gets an equal part of what is tolerated for
    all. A share of rows or a threshold is the same for one and for many.
    """
    if budget.per in ("share", "threshold"):
        return budget
    return Budget(budget.amount / machines, budget.per)


def run_fleet(
    places: Sequence[str | Path],
    job: Job,
    out: Path,
    *,
    engine: Engine | None = None,
    shared: bool = False,
    group: str | None = None,
    models: Path | None = None,
    train: str | Path | None = None,
    progress: Progress = silent,
) -> FleetRun:
    """Work on every machine that `out` holds no result of; say what all of them gave.

    With `shared`, one model serves all; with `group`, one of the columns that name machines, one
    serves all machines with the same value there; with `models`, each machine is scored with its
    model from that folder. `train` holds rows of normal operation of the same machines. Machines
    with too few rows for a model of their own borrow the shared one.
    """
    at = group_column(group, names_of(job.how.by) or [])
    _check_out(out)
    with writing(str(out)):
        out.mkdir(parents=True, exist_ok=True)
        entities, notes = find_entities(places, job.how, out / _PARTS)
        if len(entities) > REPORTS:
            job = replace(job, every_report=False)
            notes = [*notes, "machines where nothing was found have no report of their own"]
        if job.alarming is not None:
            budget = per_machine(job.alarming.budget, len(entities))
            pooled = len(entities) >= LEAST
            job = replace(job, alarming=replace(job.alarming, budget=budget), pooled=pooled)
        normal = None
        if train is not None:
            found, more = find_entities([train], job.how, out / _NORMAL)
            normal, notes = {one.name: one for one in found}, [*notes, *more]
        kind = "all" if shared else group or "each"
        _same_settings(out, entities, job, kind, models, normal)
        groups: dict[str, list[Entity]] = {}
        for one in entities:
            groups.setdefault("" if at is None else one.keys[at], []).append(one)
        with LineStore(out, MachineRow.from_json) as store:
            work = _Work(entities, job, out, engine or Engine(), store, progress, models, normal)
            notes += work.each() if kind == "each" else work.together(groups)
            rows, said = kept_to_budget([store.rows[one.name] for one in entities])
            notes += [*said, *work.reports(rows)]
        for folder in (_PARTS, _NORMAL):
            shutil.rmtree(out / folder, ignore_errors=True)
    return FleetRun(ranked(rows), find_incidents(rows), notes)


def ranked(rows: Sequence[MachineRow]) -> list[MachineRow]:
    """The most severe first; what failed before what is quiet, since nobody looked at it."""
    return sorted(rows, key=lambda row: (-row.severity, row.status not in ("failed", "short")))


@dataclass
class _Work:
    """The passes over a fleet: each machine by itself, then those that borrow."""

    entities: list[Entity]
    job: Job
    out: Path
    engine: Engine
    store: LineStore[MachineRow]
    progress: Progress
    models: Path | None
    normal: dict[str, Entity] | None = None  # where another file holds the rows to learn from
    tasks: dict[str, Task] = field(default_factory=dict)  # of each machine, the last that it had

    def each(self) -> list[str]:
        known = None if self.models is None else read_models(self.models)
        tasks = []
        for entity in self.entities:
            model, borrowed = _model_of(entity, known, self.models)
            if known is not None and model is None:
                row = failures(Task(entity, self.job), "no model knows this machine; fit it first")
                if entity.name not in self.store.rows:
                    self.store.append([row])
                continue
            normal = None if self.normal is None else self.normal.get(entity.name)
            if self.normal is not None and normal is None:
                row = MachineRow(entity.name, "short", error="the training file has no rows of it")
                self.store.append([row] if entity.name not in self.store.rows else [])
                continue
            tasks.append(Task(entity, self.job, model, borrowed, normal))
        self._run(tasks)
        return self._lend()

    def together(self, groups: dict[str, list[Entity]]) -> list[str]:
        """A model for each group; a group that has too few rows borrows that of all."""
        tasks, notes, without = [], [], []
        for name, members in groups.items():
            path, said = self._shared(name, members)
            notes += [f"{name}: {one}" if name else one for one in said]
            if path is None:
                without += members
            else:
                tasks += [Task(one, self.job, str(path)) for one in members]
        if not tasks:
            raise InputError("no machine has enough rows to learn a shared model from")
        if without or (self.job.alarming is None and len(groups) > 1):
            path, said = self._shared()
            notes += said
            tasks += [Task(one, self.job, str(path), borrowed=True) for one in without]
        if without:
            notes.append(f"{len(without):,} machines are of groups with too few rows for a model")
        if self.job.alarming is None:  # learned already
            left = [task for task in tasks if task.entity.name not in self.store.rows]
            self.store.append([_learned(task) for task in left])
        else:
            self._run(tasks)
        return notes

    def _lend(self) -> list[str]:
        """Machines with too few rows for a model of their own get the shared one."""
        needy = ("short", "borrowed")  # the latter have one since an earlier run
        short = [one for one in self.entities if self.store.rows[one.name].status in needy]
        learning = self.job.alarming is None
        if (not short and not learning) or self.models is not None:
            return []
        path, notes = self._shared()
        if path is None or learning:
            return notes
        self._run([Task(one, self.job, str(path), borrowed=True) for one in short])
        few = plural(len(short), "machine has", "machines have")
        return [*notes, f"{few} too few rows for a model of their own"]

    def reports(self, rows: Sequence[MachineRow]) -> list[str]:
        """Write the reports of machines with events, where not every machine has got one."""
        if self.job.every_report or self.job.machines is None:
            return []
        wanted = [row for row in rows if row.events and row.folder is not None]
        tasks = [
            replace(self.tasks[row.machine], page=True)
            for row in wanted
            if not (Path(self.job.machines) / str(row.folder) / REPORT).is_file()
        ]
        failed = []
        for done, (task, row) in enumerate(self.engine.run(tasks) if tasks else ()):
            self.progress("reports", done + 1, len(tasks))
            failed += [(task.entity.name, row.error)] if row.error else []
        if not failed:
            return []
        (name, error), count = failed[0], len(failed)
        return [f"{count:,} machines with events have no report; of {name!r}: {error}"]

    def _shared(
        self, group: str = "", members: Sequence[Entity] | None = None
    ) -> tuple[Path | None, list[str]]:
        """The model of a group, or of all machines, as a file."""
        path = self.out if self.job.models is None else Path(self.job.models)
        path /= f"shared-{folder_name(group)}.vace" if group else SHARED
        if path.is_file():
            return path, []
        members, job = self.entities if members is None else members, self.job
        if self.normal is not None:  # all of its rows are normal
            members = [self.normal[one.name] for one in members if one.name in self.normal]
            job = replace(job, alarming=None)
        detector, notes = fit_shared(members, job)
        if detector is None:
            return None, notes
        detector.save(path)
        return path, notes

    def _run(self, tasks: list[Task]) -> None:
        """Those without a result, or with too few rows before a model was lent."""
        self.tasks |= {task.entity.name: task for task in tasks}
        known = self.store.rows
        left = [
            task
            for task in tasks
            if task.entity.name not in known
            or (task.borrowed and known[task.entity.name].status == "short")
        ]
        total = len(self.entities)
        done = total - len(left)
        self.progress("machines", done, total)
        for task, row in self.engine.run(left) if left else ():
            self.store.append([row], replace=task.borrowed)
            done += 1
            self.progress("machines", done, total)


def read_models(folder: Path) -> dict[str, str]:
    """Each machine's model file, as `vace fit --by … --models` wrote them."""
    path = folder / MODELS
    if not path.is_file():
        raise InputError(f"{folder} holds no models of a fleet; `vace fit --by … --models` does")
    machines: dict[str, str] = json.loads(path.read_text())["machines"]
    return machines


def write_models(folder: Path, rows: Sequence[MachineRow], by: Sequence[str]) -> None:
    """Write which file is whose model."""
    machines = {row.machine: row.folder for row in rows if row.status == "ok"}  # not those lent
    with whole_file(folder / MODELS) as draft:
        draft.write_text(json.dumps({"by": list(by), "machines": machines}, indent=1))


def _learned(task: Task) -> MachineRow:
    """The row of a machine whose model is that of its group."""
    assert task.model is not None
    name, status = task.entity.name, "borrowed" if task.borrowed else "ok"
    return MachineRow(name, status, Path(task.model).name, rows=task.entity.rows or 0)  # type: ignore[arg-type]


def group_column(group: str | None, by: Sequence[str]) -> int | None:
    """Which of the columns that name machines makes groups."""
    if group is None:
        return None
    if group not in by or len(by) < 2:
        raise ConfigError(
            f"{option('group', group)} came; it is one of several columns that name machines: "
            f"{option('by', f'{group},machine')} names {group} too"
        )
    return by.index(group)


def _model_of(
    entity: Entity, known: dict[str, str] | None, folder: Path | None
) -> tuple[str | None, bool]:
    if known is None or folder is None:
        return None, False
    if entity.name in known:
        return str(folder / known[entity.name]), False
    common = folder / SHARED
    return (str(common), True) if common.is_file() else (None, False)


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / PLAN).is_file():
        ours = all(
            path.name in (_PARTS, _NORMAL, "rows.lock", "rows.jsonl") for path in out.iterdir()
        )
        if not ours:
            raise InputError(f"{out} holds other files; give a new folder, or one of a fleet run")


def _same_settings(
    out: Path,
    entities: Sequence[Entity],
    job: Job,
    kind: str,
    models: Path | None,
    normal: dict[str, Entity] | None,
) -> None:
    """One folder, one run: results of two settings or of two sets of data would be mixed."""
    facts: dict[str, Any] = {
        "how": repr(job.how),
        "config": job.config.to_dict(),
        "alarming": None if job.alarming is None else asdict(job.alarming),
        "choice": asdict(job.choice),
        "shared": kind,
        "models": None if models is None else str(models.resolve()),
        "machines": [[one.name, one.rows, _sizes(one)] for one in entities],
        "training": [[one.name, one.rows, _sizes(one)] for one in (normal or {}).values()],
    }
    digest = hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()
    path = out / PLAN
    if path.is_file():
        if json.loads(path.read_text())["settings"] != digest:
            raise ConfigError(
                f"{out} holds a run with other settings or other data; give another folder"
            )
        return
    with whole_file(path) as draft:
        draft.write_text(json.dumps({"settings": digest, "command": job.command}, indent=1))


def _sizes(entity: Entity) -> list[int]:
    if entity.sorted:
        return []
    return [Path(place).stat().st_size for place, _ in entity.parts if Path(place).is_file()]


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
