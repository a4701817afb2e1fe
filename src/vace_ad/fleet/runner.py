"""A fleet run: finds the machines, skips those with results, and runs the rest.

With a folder, an interrupted run is resumed; without one, results are in memory, and their lines
in a folder that vanishes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vace_ad.alarms import Budget
from vace_ad.app.results import writing
from vace_ad.atomic import write_text
from vace_ad.errors import ConfigError, InputError
from vace_ad.executors.store import LineStore
from vace_ad.fleet.entities import Machine, MachineRow, find_entities, machines_in
from vace_ad.fleet.executor import (
    AnyExecutor,
    DatasetExecutor,
    Executor,
    dataset_machines,
    is_dataset,
)
from vace_ad.fleet.incidents import FleetIncident, find_incidents, with_vanished
from vace_ad.fleet.models import MACHINES, FleetModels, group_column
from vace_ad.fleet.passes import Passes
from vace_ad.fleet.task import Job
from vace_ad.fleet.threshold import LEAST, kept_to_budget
from vace_ad.frames.read_options import ReadOptions, names_of
from vace_ad.frames.table import as_polars
from vace_ad.progress import Progress, silent

PLAN = "fleet.json"
_PARTS, _NORMAL = ".parts", ".normal"
REPORTS = 200  # machines; of more, only those with events get a report, which is most of the disk


@dataclass(frozen=True)
class FleetRun:
    """The results of a fleet run."""

    rows: list[MachineRow]  # the most severe first, then those that failed
    incidents: list[FleetIncident]
    notes: list[str] = field(default_factory=list)
    models: FleetModels = field(default_factory=FleetModels)  # that were learned

    def count(self, status: str) -> int:
        """How many machines have this status."""
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
    models: FleetModels | None = None,
    train: Any = None,
    progress: Progress = silent,
) -> FleetRun:
    """Process every machine without a result in `folder`, and return the results of all.

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
        machines, notes = machines_of(data, job.how, place / _PARTS, fetch)
        if folder is not None and len(machines) > REPORTS:
            job = replace(job, every_report=False)
            notes = [*notes, "machines where nothing was found have no report of their own"]
        if job.alarming is not None:
            budget = per_machine(job.alarming.budget, len(machines))
            pooled = len(machines) >= LEAST
            job = replace(job, alarming=replace(job.alarming, budget=budget), pooled=pooled)
        normal = None
        if train is not None:
            found, more = machines_of(train, job.how, place / _NORMAL)
            normal, notes = {one.name: one for one in found}, [*notes, *more]
        job = replace(job, folder=None if folder is None else str(folder))
        kind = "all" if shared else group or "each"
        if folder is not None:
            _same_settings(folder, machines, job, kind, models, normal)
        doing: AnyExecutor = (
            DatasetExecutor(data, by) if is_dataset(data) else executor or Executor()
        )
        store = stack.enter_context(LineStore(place, MachineRow.from_json))
        work = Passes(machines, job, doing, store, progress, at, normal)
        learned = FleetModels()
        if models is not None:
            work.score(models)
        elif job.alarming is None:
            learned, said = work.learn(kind, group)
            notes += said
        else:
            notes += work.learn_and_score(kind, group)
        rows, said = kept_to_budget([store.rows[one.name] for one in machines])
        rows, gone = with_vanished(rows)
        notes += [*said, *gone, *work.reports(rows)]
        for part in (_PARTS, _NORMAL):
            shutil.rmtree(place / part, ignore_errors=True)
    return FleetRun(ranked(rows), find_incidents(rows), notes, learned)


def ranked(rows: Sequence[MachineRow]) -> list[MachineRow]:
    """The most severe first; then those without data; what failed before what is quiet."""
    return sorted(
        rows,
        key=lambda row: (
            -row.severity,
            row.vanished_since is None,
            row.status not in ("failed", "short"),  # since it was not examined
        ),
    )


def machines_of(
    data: Any, how: ReadOptions, folder: Path, fetch: int | None = None
) -> tuple[list[Machine], list[str]]:
    """The machines of paths, a table or a Ray Dataset, and notes.

    With `fetch`, the key that makes groups or -1, the largest machines of a Dataset have their
    rows here.
    """
    by = names_of(how.by) or []
    if is_dataset(data):
        return dataset_machines(data, by, fetch, MACHINES), []
    if isinstance(data, str | Path) or _are_paths(data):
        return find_entities(data, how, folder)
    try:
        frame = as_polars(data)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"got a {type(data).__name__}; a fleet is a pandas, polars or Arrow table, a Ray "
            "Dataset, or paths, with a column that names the machine"
        ) from error
    return machines_in(frame, by), []


def _are_paths(data: Any) -> bool:
    return isinstance(data, list | tuple) and all(isinstance(one, str | Path) for one in data)


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
    entities: Sequence[Machine],
    job: Job,
    kind: str,
    models: FleetModels | None,
    normal: dict[str, Machine] | None,
) -> None:
    """Refuse a folder of a run with other settings or data, whose results would be mixed."""
    facts: dict[str, Any] = {
        "how": repr(job.how),
        "config": job.config.to_dict(),
        "alarming": None if job.alarming is None else asdict(job.alarming),
        "choice": asdict(job.training),
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
    write_text(path, json.dumps({"settings": digest, "command": job.command}, indent=1))


def _sizes(entity: Machine) -> list[int]:
    if entity.sorted:
        return []
    return [Path(place).stat().st_size for place, _ in entity.parts if Path(place).is_file()]
