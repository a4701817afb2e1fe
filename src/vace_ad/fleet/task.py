"""One machine: read its rows, learn or load its model, find its events, write its results.

A task may run in a process of its own and never raises: an error becomes its row.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Union

import numpy as np
import polars as pl

from vace_ad.alarms.events import ANOMALY
from vace_ad.app.loading import Loaded, load_frame, read_frame
from vace_ad.app.results import event_record, iso_time, plain, write_page, write_results
from vace_ad.app.run import (
    Alarming,
    Run,
    TrainingRows,
    choose_training,
    detect_with,
    fit_and_detect,
    fit_detector,
)
from vace_ad.config import VACEConfig
from vace_ad.detector import VACE, load
from vace_ad.errors import TooShortError, VaceError
from vace_ad.fleet.entities import Machine, MachineRow, Status, folder_name
from vace_ad.fleet.threshold import own_bar, peaks_of, supported
from vace_ad.frames.read import ReadReport
from vace_ad.frames.read_options import ReadOptions, TrainingOptions, names_of
from vace_ad.frames.sources import FILE, TableSource
from vace_ad.progress import silent

Model = Union[str, "VACE"]  # the path of a model's file, or the detector
REPORT = "report.html"  # as write_results names it
# Options of files, which rows that were sorted by machine are no longer in.
_FILE_OPTIONS = (
    "delimiter", "decimal", "encoding", "header", "sheet", "header_row", "query"
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """The settings that all machines of a run share."""

    how: ReadOptions
    config: VACEConfig
    alarming: Alarming | None  # None: learn only
    training: TrainingOptions = field(
        default_factory=TrainingOptions
    )  # which rows of a machine are normal
    folder: str | None = None  # of the run: each machine's results, or its model
    every_report: bool = True  # at once; else of those that `page` asks for, once all are judged
    kind: str = "parquet"  # of the scores
    command: str = ""
    pooled: bool = False  # the fleet is large enough to tell how strong an alarm must be


@dataclass(frozen=True)
class Task:
    """A machine, and the model it gets where it does not learn one."""

    entity: Machine
    job: Job
    model: Model | None = None
    borrowed: bool = False  # the model is the shared one
    normal: Machine | None = None  # rows of normal operation, where another file holds them
    page: bool = False  # its results are there, and only the report is to be written


class Outcome(NamedTuple):
    """The result of a task."""

    row: MachineRow
    model: Model | None = None  # what was learned, where models are learned only


def compute(task: Task) -> Outcome:
    """Run a task; an error becomes its row."""
    started = perf_counter()
    model: Model | None = None
    try:
        if task.page:
            row = _page(task)
        elif task.job.alarming is None:
            row, model = _learn(task)
        else:
            row = _detect(task)
    except VaceError as error:
        words = error.told(options=task.job.how.options)
        row = failure(task.entity, words, "short" if isinstance(error, TooShortError) else "failed")
    except Exception as error:  # a bug must not end the whole fleet
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        row = failure(task.entity, f"{type(error).__name__}: {error} ({where})")
    return Outcome(replace(row, seconds=round(perf_counter() - started, 3)), model)


def failure(entity: Machine, error: str, status: Status = "failed") -> MachineRow:
    """The row of a machine for which nothing could be done."""
    return MachineRow(entity.name, status, error=error, rows=entity.rows or 0)


def failures(task: Task, error: str) -> Outcome:
    """The result of a task whose process died."""
    return Outcome(failure(task.entity, error))


def detector_of(model: Model, planned: tuple[str, ...] = ()) -> VACE:
    """A model, read where it is a file; `planned` windows are newer than those it has."""
    if not isinstance(model, str):
        return model
    return load(model, **({"maintenance": planned} if planned else {}))


def load_entity(
    entity: Machine, how: ReadOptions, channels: tuple[str, ...] | None = None
) -> Loaded:
    """A machine's rows as a table; files that overlap in time are refused by their names."""
    by = names_of(how.by) or ["machine"]
    if entity.frame is not None:
        report = ReadReport.of_table(entity.name, entity.frame)
        return load_frame(entity.frame, report, replace(how, by=by), channels)
    no_options: dict[str, Any] = dict.fromkeys(_FILE_OPTIONS if entity.sorted else ())
    plainly = replace(how, **no_options)
    frame, report = read_frame([TableSource(place) for place, _ in entity.parts], plainly)
    places = [origin for _, origin in entity.parts]
    if len(set(places)) < len(places):
        frame = _by_origin(frame, places)
    report = replace(report, source=entity.name)
    return load_frame(frame, report, replace(plainly, by=by), channels, places)


def _by_origin(frame: pl.DataFrame, places: list[str]) -> pl.DataFrame:
    """Number rows by the file that they came from, not by the piece."""
    firsts = [places.index(place) for place in places]
    return frame.with_columns(
        pl.col(FILE).replace_strict(dict(enumerate(firsts)), return_dtype=pl.UInt32)
    )


def _learn(task: Task) -> tuple[MachineRow, Model]:
    """A machine's model, as a file where the run has a folder."""
    job = task.job
    loaded = load_entity(task.entity, job.how)
    training = TrainingRows([loaded], None, f"{len(loaded.table):,} rows")
    detector, notes = fit_detector(job.config, training, silent)
    model: Model = detector
    if job.folder is not None:
        model = str(Path(job.folder) / f"{folder_name(task.entity.name)}.vace")
        detector.save(model)
    row = MachineRow(
        task.entity.name,
        "ok",
        Path(model).name if isinstance(model, str) else None,
        rows=len(loaded.table),
        channels=len(loaded.table.names),
        notes=(*loaded.notes, *notes),
    )
    return row, model


def _detect(task: Task) -> MachineRow:
    job = task.job
    assert job.alarming is not None
    run = replace(_judge(task), command=job.command)
    folder = None
    if job.folder is not None:
        folder = folder_name(task.entity.name)
        write_results(run, machine_folder(job, folder), job.kind, report=job.every_report)
    status: Status = "borrowed" if task.borrowed else "ok"
    return row_of(task.entity.name, run, status, folder, part=job.alarming)


def machine_folder(job: Job, folder: str) -> Path:
    """Where the results of a machine are."""
    assert job.folder is not None
    return Path(job.folder) / "machines" / folder


def _judge(task: Task, learned: VACE | None = None) -> Run:
    """The run of a machine with the model that it is given, has learned, or learns now."""
    job = task.job
    if task.model is not None:
        detector = detector_of(task.model, job.config.maintenance)
        loaded = load_entity(task.entity, job.how, detector.channels_)
        alarming = _alarming(task, detector.model_.step, detector.calibration_.n_rows)
        return _with_model(detector, loaded, task, alarming)
    loaded = load_entity(task.entity, job.how)
    training = (
        choose_training(loaded, job.config, job.training, job.how)
        if task.normal is None
        else _other_rows(task, loaded)
    )
    alarming = _alarming(task, training.tables[0].clock.step, _count(training))
    if learned is not None:
        return detect_with(learned, loaded, training, alarming)
    return fit_and_detect(loaded, training, job.config, alarming)


def _page(task: Task) -> MachineRow:
    """Write the report of a machine whose results are there."""
    folder = machine_folder(task.job, folder_name(task.entity.name))
    run = _judge(task, None if task.model is not None else load(folder / "model.vace"))
    notes = json.loads((folder / "run.json").read_text())["notes"]  # also what the fit had to say
    write_page(replace(run, notes=notes, command=task.job.command), folder / REPORT)
    return MachineRow(task.entity.name, "ok")


def _other_rows(task: Task, loaded: Loaded) -> TrainingRows:
    """All rows that another file has of the machine."""
    assert task.normal is not None
    other = load_entity(task.normal, task.job.how, loaded.table.names)
    return TrainingRows([other], None, f"{len(other.table):,} rows of {task.normal.parts[0][1]}")


def _count(training: TrainingRows) -> int:
    return training.rows or sum(len(one.table) for one in training.tables)


def _alarming(task: Task, step: int | None, trained: int) -> Alarming:
    """When this machine alarms; in a large fleet never by less than its training can show."""
    assert task.job.alarming is not None
    if not task.job.pooled:
        return task.job.alarming
    return supported(task.job.alarming, trained, step)


def _with_model(detector: VACE, loaded: Loaded, task: Task, alarming: Alarming) -> Run:
    words = "the shared model" if task.borrowed else f"{detector.facts_['rows']:,} rows"
    notes = ["too few rows for a model of its own: the shared model was used"] * task.borrowed
    training = TrainingRows([], None, words)
    return detect_with(detector, loaded, training, alarming, notes=notes)


def row_of(
    name: str,
    run: Run,
    status: Status,
    folder: str | None = None,
    *,
    part: Alarming,
) -> MachineRow:
    """A machine's row from its run; `part` has its share of the fleet's budget."""
    zone, step = run.loaded.clock.zone, run.detector.model_.step or part.step
    rate, first = part.budget.rate(step), run.training.rows or 0
    model = run.detector.model_
    bar = own_bar(part.budget, run.alarming.budget, step, model.alarm.tails)
    peaks = peaks_of(run.found, first, model.config.length) if bar > 1 else ()
    time = run.loaded.table.time
    return MachineRow(
        name,
        status,
        folder,
        rows=len(run.loaded.table),
        channels=len(run.loaded.table.names),
        threshold=plain(float(run.found.threshold.value)),
        zone=zone,
        events=tuple(_records(run)),
        notes=tuple(run.notes),
        bar=bar,
        allowed=(rate or 0.0) * (len(run.loaded.table) - first),
        until=None if time is None else iso_time(time[-1], zone),
        patience=None if step is None else (model.config.max_gap + 1) * step,
        peaks=peaks,
    )


def _records(run: Run) -> Iterator[dict[str, Any]]:
    """Events for programs, each with its height: its highest evidence over the limit."""
    for event in run.found.events:
        rows = run.found.evidence[event.start : event.end]
        height = float(np.nanmax(rows, initial=0.0)) if event.kind == ANOMALY else None
        yield plain({**event_record(event, run.loaded.clock.zone), "height": height})
