"""A fleet run: which machines there are, which results are there, and the work in between.

With a folder, a run killed or finished goes on where it was; without one, it is in memory.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from vace_ad.alarms import Budget
from vace_ad.app.results import writing
from vace_ad.errors import ConfigError, InputError
from vace_ad.fleet.dataset import dataset_machines, is_dataset
from vace_ad.fleet.entities import Entity, find_entities, machines_in
from vace_ad.fleet.executor import DatasetExecutor, Executor, Runs
from vace_ad.fleet.incidents import Incident, find_incidents
from vace_ad.fleet.models import MACHINES, Models, fit_shared, group_column, shared_file
from vace_ad.fleet.pooling import LEAST, kept_to_budget
from vace_ad.fleet.rows import MachineRow
from vace_ad.fleet.task import REPORT, Job, Model, Task, failure, machine_folder
from vace_ad.frames.reading import Reading, names_of
from vace_ad.frames.write import whole_file
from vace_ad.progress import Progress, silent
from vace_ad.work.store import LineStore

if TYPE_CHECKING:
    import polars as pl

PLAN = "fleet.json"
_PARTS, _NORMAL = ".parts", ".normal"
REPORTS = 200  # machines; of more, only those with events get a report, which is most of the disk


@dataclass(frozen=True)
class FleetRun:
    """What a run gave."""

    rows: list[MachineRow]  # the most severe first, then those that failed
    incidents: list[Incident]
    notes: list[str] = field(default_factory=list)
    models: Models = field(default_factory=Models)  # that were learned

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
    data: Any,
    job: Job,
    folder: Path | None = None,
    *,
    executor: Executor | None = None,
    shared: bool = False,
    group: str | None = None,
    models: Models | None = None,
    train: Any = None,
    progress: Progress = silent,
) -> FleetRun:
    """Work on every machine that `folder` holds no result of; say what all of them gave.

    `data` are paths, a table or a Ray Dataset. A job without alarms only learns; with `models`,
    each machine is scored with its own; else each is learned from its leading rows, or from those
    that `train` has of it, and the others are scored. With `shared`, one model is learned for
    all; with `group`, one of the columns that name machines, one for all machines with the same
    value there. Machines with too few rows for a model of their own borrow the shared one.
    """
    by = names_of(job.how.by) or []
    at = group_column(group if models is None else models.group, by)
    with ExitStack() as stack:
        if folder is not None:
            _check_out(folder)
            stack.enter_context(writing(str(folder)))
            folder.mkdir(parents=True, exist_ok=True)
        place = folder or Path(stack.enter_context(TemporaryDirectory(prefix="vace-fleet-")))
        fetch = None if models is not None else -1 if at is None else at
        machines, notes = _machines(data, job.how, place / _PARTS, fetch)
        if folder is not None and len(machines) > REPORTS:
            job = replace(job, every_report=False)
            notes = [*notes, "machines where nothing was found have no report of their own"]
        if job.alarming is not None:
            budget = per_machine(job.alarming.budget, len(machines))
            pooled = len(machines) >= LEAST
            job = replace(job, alarming=replace(job.alarming, budget=budget), pooled=pooled)
        normal = None
        if train is not None:
            found, more = _machines(train, job.how, place / _NORMAL)
            normal, notes = {one.name: one for one in found}, [*notes, *more]
        job = replace(job, folder=None if folder is None else str(folder))
        kind = "all" if shared else group or "each"
        if folder is not None:
            _same_settings(folder, machines, job, kind, models, normal)
        doing: Runs = DatasetExecutor(data, by) if is_dataset(data) else executor or Executor()
        store = stack.enter_context(_store(folder))
        work = _Work(machines, job, doing, store, progress, at, normal)
        learned = Models()
        if models is not None:
            work.score(models)
        elif job.alarming is None:
            learned, said = work.learn(kind, group)
            notes += said
        else:
            notes += work.learn_and_score(kind, group)
        rows, said = kept_to_budget([store.rows[one.name] for one in machines])
        notes += [*said, *work.reports(rows)]
        for part in (_PARTS, _NORMAL):
            shutil.rmtree(place / part, ignore_errors=True)
    return FleetRun(ranked(rows), find_incidents(rows), notes, learned)


def ranked(rows: Sequence[MachineRow]) -> list[MachineRow]:
    """The most severe first; what failed before what is quiet, since nobody looked at it."""
    return sorted(rows, key=lambda row: (-row.severity, row.status not in ("failed", "short")))


class _Memory:
    """Rows of a run that is not kept."""

    def __init__(self) -> None:
        self.rows: dict[Any, MachineRow] = {}

    def append(self, rows: Sequence[MachineRow], replace: bool = False) -> None:
        self.rows.update({row.key: row for row in rows})


@contextmanager
def _store(folder: Path | None) -> Iterator[LineStore[MachineRow] | _Memory]:
    if folder is None:
        yield _Memory()
    else:
        with LineStore(folder, MachineRow.from_json) as store:
            yield store


@dataclass
class _Work:
    """The passes over a fleet: each machine by itself, then those that borrow."""

    machines: list[Entity]
    job: Job
    executor: Runs
    store: LineStore[MachineRow] | _Memory
    progress: Progress
    at: int | None  # the key that makes groups
    normal: dict[str, Entity] | None = None  # where another file holds the rows to learn from
    tasks: dict[str, Task] = field(default_factory=dict)  # of each machine, the last that it had

    def learn(self, kind: str, group: str | None) -> tuple[Models, list[str]]:
        """Models of machines or groups, and the shared one; rows say what came of each."""
        models, notes = self._common(kind, group, every=True)
        if kind == "each":
            models.machines = self._run([Task(one, self.job) for one in self.machines])
        else:
            for one in self.machines:
                model, lent = models.of(one, self.at)
                name = Path(model).name if isinstance(model, str) else None
                status = "failed" if model is None else "borrowed" if lent else "ok"
                row = MachineRow(one.name, status, name, rows=one.rows or 0)  # type: ignore[arg-type]
                self._keep(row)
        rows = [self.store.rows[one.name] for one in self.machines]
        models.failures = {row.machine: row.error for row in rows if row.error is not None}
        if not models.machines and not models.groups and models.shared is None:
            first = next(iter(models.failures.items()), ("all of them", "; ".join(notes)))
            raise InputError(f"no machine could be learned; {first[0]!r}: {first[1]}")
        return models, notes

    def score(self, models: Models) -> None:
        """Each machine with its model."""
        tasks = []
        for one in self.machines:
            model, lent = models.of(one, self.at)
            if model is None:
                why = models.failures.get(one.name, "no model knows this machine; fit it first")
                self._keep(failure(one, why))
            else:
                tasks.append(Task(one, self.job, model, lent))
        self._run(tasks)

    def learn_and_score(self, kind: str, group: str | None) -> list[str]:
        """Each machine with what its own rows, its group or all of them teach."""
        if kind != "each":
            models, notes = self._common(kind, group, every=False)
            if models.shared is None and not models.groups:
                raise InputError("no machine has enough rows to learn a shared model from")
            self.score(models)
            lent = sum(models.of(one, self.at)[1] for one in self.machines)
            more = f"{lent:,} machines are of groups with too few rows for a model"
            return [*notes, more] if lent else notes
        tasks = []
        for one in self.machines:
            normal = None if self.normal is None else self.normal.get(one.name)
            if self.normal is not None and normal is None:
                self._keep(failure(one, "the training file has no rows of it", "short"))
                continue
            tasks.append(Task(one, self.job, normal=normal))
        self._run(tasks)
        needy = ("short", "borrowed")  # the latter have one since an earlier run
        short = [one for one in self.machines if self.store.rows[one.name].status in needy]
        if not short:
            return []
        model, notes = self._shared()
        if model is None:
            return notes
        self._run([Task(one, self.job, model, borrowed=True) for one in short])
        return [*notes, f"{len(short):,} machines have too few rows for a model of their own"]

    def reports(self, rows: Sequence[MachineRow]) -> list[str]:
        """Write the reports of machines with events, where not every machine has got one."""
        if self.job.every_report or self.job.alarming is None:
            return []
        tasks = [
            replace(self.tasks[row.machine], page=True)
            for row in rows
            if row.events and row.folder is not None
            if not (machine_folder(self.job, row.folder) / REPORT).is_file()
        ]
        failed = []
        for done, (task, outcome) in enumerate(self.executor.run(tasks) if tasks else ()):
            self.progress("reports", done + 1, len(tasks))
            error = outcome.row.error
            failed += [(task.entity.name, error)] if error else []
        if not failed:
            return []
        (name, error), count = failed[0], len(failed)
        return [f"{count:,} machines with events have no report; of {name!r}: {error}"]

    def _common(self, kind: str, group: str | None, *, every: bool) -> tuple[Models, list[str]]:
        """Models of groups and of all machines; the latter where it is needed, or for `every`."""
        models, notes = Models(group=group, everybody=kind == "all"), []
        members: dict[str, list[Entity]] = {}
        if self.at is not None:
            for one in self.machines:
                members.setdefault(one.keys[self.at], []).append(one)
        for name, some in members.items():
            model, said = self._shared(name, some)
            notes += [f"{name}: {one}" for one in said]
            if model is not None:
                models.groups[name] = model
        if every or models.everybody or (models.groups and len(models.groups) < len(members)):
            models.shared, said = self._shared()
            notes += said
        return models, notes

    def _shared(
        self, group: str = "", members: Sequence[Entity] | None = None
    ) -> tuple[Model | None, list[str]]:
        """The model of a group, or of all machines: a file where the run has a folder."""
        path = None if self.job.folder is None else Path(self.job.folder) / shared_file(group)
        if path is not None and path.is_file():
            return str(path), []
        members, job = self.machines if members is None else members, self.job
        if self.normal is not None:  # all of its rows are normal
            members = [self.normal[one.name] for one in members if one.name in self.normal]
            job = replace(job, alarming=None)
        detector, notes = fit_shared(members, job)
        if detector is None or path is None:
            return detector, notes
        detector.save(path)
        return str(path), notes

    def _run(self, tasks: list[Task]) -> dict[str, Model]:
        """Those without a result, or with too few rows before a model was lent; what they learn."""
        self.tasks |= {task.entity.name: task for task in tasks}
        known, models = self.store.rows, self._kept_models()
        left = [
            task
            for task in tasks
            if task.entity.name not in known
            or (task.borrowed and known[task.entity.name].status == "short")
        ]
        total = len(self.machines)
        done = total - len(left)
        self.progress("machines", done, total)
        for task, outcome in self.executor.run(left) if left else ():
            self.store.append([outcome.row], replace=task.borrowed)
            if outcome.model is not None:
                models[task.entity.name] = outcome.model
            done += 1
            self.progress("machines", done, total)
        return models

    def _kept_models(self) -> dict[str, Model]:
        """What an earlier run learned, where this one only learns."""
        if self.job.alarming is not None or self.job.folder is None:
            return {}
        return {
            row.machine: str(Path(self.job.folder) / str(row.folder))
            for row in self.store.rows.values()
            if row.status == "ok"
        }

    def _keep(self, row: MachineRow) -> None:
        """Keep a row that needs no work."""
        self.store.append([row] if row.machine not in self.store.rows else [])


def _machines(
    data: Any, how: Reading, folder: Path, fetch: int | None = None
) -> tuple[list[Entity], list[str]]:
    """The machines of paths, a table or a Ray Dataset, and notes.

    With `fetch`, the key that makes groups or -1, the largest machines of a Dataset have their
    rows here.
    """
    by = names_of(how.by) or []
    if is_dataset(data):
        return dataset_machines(data, by, fetch, MACHINES), []
    if isinstance(data, str | Path) or _are_paths(data):
        return find_entities(data, how, folder)
    return machines_in(_as_polars(data), by), []


def _are_paths(data: Any) -> bool:
    return isinstance(data, list | tuple) and all(isinstance(one, str | Path) for one in data)


def _as_polars(data: Any) -> pl.DataFrame:
    """Any kind of table as a polars one; a pandas index of times becomes a column."""
    import narwhals.stable.v2 as nw

    index: Any = getattr(data, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") == "M":
        title = index.name if index.name not in (None, *data.columns) else "\0index"
        data = data.rename_axis(title).reset_index()
    try:
        frame: pl.DataFrame = nw.from_native(data, eager_only=True).to_polars()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a {type(data).__name__} came; a fleet is a pandas, polars or Arrow table, a Ray "
            "Dataset, or paths, with a column that names the machine"
        ) from error
    return frame


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
    models: Models | None,
    normal: dict[str, Entity] | None,
) -> None:
    """One folder, one run: results of two settings or of two sets of data would be mixed."""
    facts: dict[str, Any] = {
        "how": repr(job.how),
        "config": job.config.to_dict(),
        "alarming": None if job.alarming is None else asdict(job.alarming),
        "choice": asdict(job.choice),
        "shared": kind,
        "models": models and [str(models.machines), str(models.groups), str(models.shared)],
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
