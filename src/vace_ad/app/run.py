"""One run: from a table to events and result files.

Only this module and `training_rows` use the detector.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vace_ad.alarms import Budget, Rules
from vace_ad.alarms.forewarning import Forewarning, forewarning
from vace_ad.app.loading import Loaded
from vace_ad.app.results import event_record, is_formula, results_folder, write_run, write_tables
from vace_ad.app.training_rows import TrainingRows, fit_detector
from vace_ad.config import VACEConfig
from vace_ad.detection import Detection
from vace_ad.detector import VACE
from vace_ad.frames.spans import rows_of
from vace_ad.frames.timestamps import time_words
from vace_ad.progress import Progress, silent
from vace_ad.report import write_report
from vace_ad.version import __version__
from vace_ad.views.report import report_data
from vace_ad.wording import listed, plural


@dataclass(frozen=True)
class Alarming:
    """When to alarm, and what makes one event."""

    budget: Budget
    rules: Rules = Rules()
    step: int | None = None  # nanoseconds between rows of a table without time


@dataclass(frozen=True)
class Run:
    """The results of a detector on a table under a budget."""

    loaded: Loaded
    detector: VACE
    found: Detection
    budget: Budget
    rules: Rules
    training: TrainingRows
    notes: list[str]
    command: str = ""  # the command that runs it again
    started: float = field(default_factory=time.perf_counter)

    @cached_property
    def forewarning(self) -> Forewarning | None:
        """How the events compare with the labels; None without labels."""
        table, faults, first = self.loaded.table, self.loaded.faults, self.training.rows or 0
        if not faults:
            return None
        judged = ~np.isnan(self.found.evidence) & (np.arange(len(table)) >= first)
        alarms = [
            (one.start, one.end, one.start if one.alarm is None else one.alarm)
            for one in self.found.anomalies
        ]
        rows = rows_of(faults, table.time, table.zone)
        assert table.time is not None
        codes = [one.code for one in faults]
        return forewarning(table.time, rows, alarms, codes=codes, judged=judged)

    def record(self) -> dict[str, Any]:
        """The run for JSON."""
        source, table = self.loaded.source, self.loaded.table
        geometry = self.detector.geometry_
        return {
            "command": self.command,
            "input": {**asdict(source), "rows": len(table), "channels": list(table.names)},
            "time": asdict(self.loaded.clock),
            "training": self.training.record(),
            "config": self.detector.config.to_dict(),
            "seed": self.detector.config.random_state,
            "fit": dict(self.detector.facts_),
            "geometry": geometry and asdict(geometry),
            "budget": asdict(self.budget),
            "rules": asdict(self.rules),
            "threshold": asdict(self.found.threshold),
            "notes": self.notes,
            "labels": None if (measured := self.forewarning) is None else measured.to_plain(),
            "idle": [one._asdict() for one in self.found.idle],
            "seconds": round(time.perf_counter() - self.started, 3),
            "events": [event_record(event, self.loaded.clock.zone) for event in self.found.events],
            "accepted": [
                {**event_record(event, self.loaded.clock.zone), "like": event.like}
                for event in self.found.accepted
            ],
        }


def fit_and_detect(
    loaded: Loaded,
    training: TrainingRows,
    config: VACEConfig,
    alarming: Alarming,
    *,
    command: str = "",
    progress: Progress = silent,
    started: float | None = None,
) -> Run:
    """Fit on the training rows, find the events of the others."""
    clocks = [table.clock.step for table in training.tables]
    alarming.budget.rate(clocks[0] or alarming.step)  # a budget in time without time too
    detector, notes = fit_detector(config, training, progress)
    return detect_with(
        detector,
        loaded,
        training,
        alarming,
        notes=notes,
        command=command,
        progress=progress,
        started=started,
    )


def detect_with(
    detector: VACE,
    loaded: Loaded,
    training: TrainingRows,
    alarming: Alarming,
    *,
    notes: Sequence[str] = (),
    command: str = "",
    progress: Progress = silent,
    started: float | None = None,
) -> Run:
    """Find the events of a table with a fitted detector; training rows make none."""
    loaded = loaded.only(detector.channels_)
    budget = alarming.budget.at(detector.model_.step or alarming.step)
    found = detector.detect(
        loaded.table,
        budget=budget,
        rules=alarming.rules,
        first=training.rows or 0,
        step=alarming.step,
        progress=progress,
    )
    every = [*loaded.notes, *notes, *found.notes, *_accepted_note(found, loaded.clock.zone)]
    began = time.perf_counter() if started is None else started
    return Run(loaded, detector, found, budget, alarming.rules, training, every, command, began)


def _accepted_note(found: Detection, zone: str | None) -> list[str]:
    """A note on stretches that feedback has accepted as normal."""
    if not found.accepted:
        return []
    when = [
        f"row {one.start:,}" if one.start_time is None else time_words(one.start_time, zone)
        for one in found.accepted
    ]
    made = plural(len(when), "stretch", "stretches")
    return [f"{made} made no event, accepted as normal by feedback: {listed(when)}"]


def write_results(
    run: Run,
    out: Path,
    kind: str,
    progress: Progress = silent,
    *,
    report: bool = True,
    excel: bool = False,
    add: Callable[[Path], None] | None = None,
) -> None:
    """Write scores, events, model, run and report into a folder that appears whole.

    `add` writes more into it.
    """
    if any(is_formula(name) for name in run.loaded.table.names):
        run.notes.append(
            "names that begin with =, +, - or @ get a ' in front in CSV files, so that no "
            "spreadsheet runs them"
        )
    with results_folder(out) as folder:
        progress("writing", 0, 3)
        write_tables(folder, run.loaded, run.found, kind, excel=excel)
        progress("writing", 1, 3)
        run.detector.save(folder / "model.vace")
        write_run(folder, run.record())
        progress("writing", 2, 3)
        if report:
            write_page(run, folder / "report.html")
        if add is not None:
            add(folder)
        progress("writing", 3, 3)


def write_page(run: Run, path: Path) -> None:
    """Write the report of a run."""
    source = run.loaded.source
    facts = {
        "input": source.words(),
        "checksum": f"sha256 {source.sha256}",
        "seed": str(run.detector.config.random_state),
        "engine": str(run.detector.facts_.get("engine", "")),
        "vace-ad": __version__,
    }
    data = report_data(
        Path(source.source).name,
        run.found,
        training=None if run.training.rows is None else (0, run.training.rows),
        notes=run.notes,
        facts=facts,
        command=run.command,
        rules=run.rules,
        units=source.units,
    )
    write_report(data, path)
