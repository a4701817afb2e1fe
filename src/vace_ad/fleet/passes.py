"""The passes over a fleet: each machine on its own, then those that use a shared model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vace_ad.errors import InputError
from vace_ad.executors.store import LineStore
from vace_ad.fleet.entities import Machine, MachineRow
from vace_ad.fleet.executor import AnyExecutor
from vace_ad.fleet.models import FleetModels, fit_shared, shared_file
from vace_ad.fleet.task import REPORT, Job, Model, Task, failure, machine_folder
from vace_ad.progress import Progress
from vace_ad.wording import plural


@dataclass
class Passes:
    """The work on a fleet; rows of machines that are in the store are not made again."""

    machines: list[Machine]
    job: Job
    executor: AnyExecutor
    store: LineStore[MachineRow]
    progress: Progress
    at: int | None  # the key that makes groups
    normal: dict[str, Machine] | None = None  # where another file holds the rows to learn from
    tasks: dict[str, Task] = field(default_factory=dict)  # of each machine, the last that it had

    def learn(self, kind: str, group: str | None) -> tuple[FleetModels, list[str]]:
        """Fit the models of machines or groups, and the shared one; store a row a machine."""
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

    def score(self, models: FleetModels) -> None:
        """Score each machine with its model."""
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
        """Fit each machine, its group or all machines, and score each machine."""
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
        without_own = ("short", "borrowed")  # the latter since an earlier run
        short = [one for one in self.machines if self.store.rows[one.name].status in without_own]
        if not short:
            return []
        model, notes = self._shared()
        if model is None:
            return notes
        self._run([Task(one, self.job, model, borrowed=True) for one in short])
        few = plural(len(short), "machine has", "machines have")
        return [*notes, f"{few} too few rows for a model of their own"]

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

    def _common(
        self, kind: str, group: str | None, *, every: bool
    ) -> tuple[FleetModels, list[str]]:
        """Models of groups and of all machines; the latter where it is needed, or for `every`."""
        models, notes = FleetModels(group=group, everybody=kind == "all"), []
        members: dict[str, list[Machine]] = {}
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
        self, group: str = "", members: Sequence[Machine] | None = None
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
        """Run the tasks that have no result yet; return the models that were fitted."""
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
        """Models that an earlier, interrupted fit has written."""
        if self.job.alarming is not None or self.job.folder is None:
            return {}
        return {
            row.machine: str(Path(self.job.folder) / str(row.folder))
            for row in self.store.rows.values()
            if row.status == "ok"
        }

    def _keep(self, row: MachineRow) -> None:
        """Store a row that needs no computation."""
        self.store.append([row] if row.machine not in self.store.rows else [])
