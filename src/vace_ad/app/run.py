"""One run: choose the training rows of a table, fit a detector, find the events of the others.

Only this module uses the detector; none of its functions writes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms import Budget, Rules
from vace_ad.alarms.forewarning import Forewarning, forewarning
from vace_ad.app.loading import Loaded, load_table
from vace_ad.app.results import event_record
from vace_ad.config import VACEConfig
from vace_ad.detection import Detection
from vace_ad.detector import VACE
from vace_ad.errors import ConfigError, InputError, TooShortError, VaceWarning
from vace_ad.frames.read_options import ReadOptions, TrainingOptions
from vace_ad.frames.segments import missing_cells, run_edges
from vace_ad.frames.spans import parse_range, rows_of
from vace_ad.frames.table import Table
from vace_ad.frames.time import no_time
from vace_ad.frames.timestamps import moment, time_words
from vace_ad.progress import Progress, silent
from vace_ad.settings import option
from vace_ad.wording import listed, plural

DEFAULT_SHARE = 0.3


@dataclass(frozen=True)
class TrainingRows:
    """The rows that a detector is fitted on."""

    tables: Sequence[Loaded]
    rows: int | None  # the first so many rows of the table; None for all of other tables
    words: str
    ranges: Sequence[str] = ()  # of time, in the table itself; then `rows` is None

    def record(self) -> dict[str, Any]:
        """The training rows for JSON."""
        if self.ranges:
            return {"ranges": list(self.ranges)}
        if self.rows is not None:
            return {"rows": [0, self.rows]}
        return {"files": [asdict(table.source) for table in self.tables]}


def choose_training(
    loaded: Loaded, config: VACEConfig, ways: TrainingOptions, how: ReadOptions
) -> TrainingRows:
    """Training rows by the one way that was given: first ones, ranges of time, or another file's.

    Rows in the ranges to skip, and those that `how.where` does not allow, are left out.
    """
    ways.check()
    file, ranges, skip = ways.train_file, ways.train_range or (), ways.train_skip or ()
    if file is not None:
        other = within(load_table(file, how, loaded.table.names), skip=skip)
        return TrainingRows([other], None, f"{_allowed(other)} of {file}")
    loaded = within(loaded, ranges, skip)
    if ranges:
        return TrainingRows([loaded], None, f"{_allowed(loaded)} of {', '.join(ranges)}", ranges)
    count = _first_rows(loaded, config, ways)
    part = count / len(loaded.table)
    words = f"the first {count:,} rows ({part:.0%})"
    if loaded.normal is not None:
        words += f", {int((~loaded.normal[:count]).sum()):,} of them left out"
    return TrainingRows([loaded], count, words)


def _allowed(loaded: Loaded) -> str:
    rows = len(loaded.table) if loaded.normal is None else int(loaded.normal.sum())
    return f"{rows:,} rows"


def within(loaded: Loaded, ranges: Sequence[str] = (), skip: Sequence[str] = ()) -> Loaded:
    """The table with only these ranges of time, without those of `skip`, to be learned from."""
    if not ranges and not skip:
        return loaded
    n = len(loaded.table)
    normal = np.ones(n, bool) if loaded.normal is None else loaded.normal.copy()
    if ranges:
        inside = [_rows_of(loaded, "train_range", one) for one in ranges]
        normal &= np.logical_or.reduce(inside)
    for one in skip:
        normal &= ~_rows_of(loaded, "train_skip", one)
    if not normal.any():
        raise InputError(
            f"no row is left to train on: {option('train_range')} and {option('train_skip')} leave "
            "none of the table's times"
        )
    return replace(loaded, normal=normal)


def _rows_of(loaded: Loaded, name: str, text: str) -> NDArray[np.bool_]:
    """Rows of `2026-01-01..2026-02-01`, (n,), its end not included; either side may be empty."""
    time = loaded.table.time
    if time is None:
        raise no_time(option(name))
    first, limit = parse_range(name, text, loaded.clock.zone, open_ended=True)
    inside = np.ones(len(time), bool) if first is None else time >= first
    return np.asarray(inside if limit is None else inside & (time < limit))


def _first_rows(loaded: Loaded, config: VACEConfig, ways: TrainingOptions) -> int:
    """How many first rows train; refuses too few, and all."""
    table, rows, until = loaded.table, ways.train_rows, ways.train_until
    if until is not None:
        count, words = _rows_until(table, until, loaded.clock.zone), f"rows before {until}"
    elif rows is not None:
        count, words = rows, f"first {rows:,} rows"
    else:
        part = DEFAULT_SHARE if ways.train_share is None else ways.train_share
        if not 0 < part < 1:
            raise ConfigError(f"{option('train_share', part)}: must be a share between 0 and 1")
        count, words = int(part * len(table)), f"first {part:.0%} of rows"
    needed = config.least_rows
    if count < needed:
        raise TooShortError(
            f"the {words} are {count:,} rows to train on, of {len(table):,}; at least {needed} are "
            f"needed: train on more ({option('train_share')}, {option('train_rows')}, "
            f"{option('train_file')}), or give a smaller {option('patch_length')}"
        )
    if count >= len(table):
        raise InputError(
            f"the {words} are all {len(table):,} rows; leave some to look at, or train on another "
            f"file with {option('train_file')}"
        )
    return count


def _rows_until(table: Table, until: str, zone: str | None) -> int:
    if table.time is None:
        raise no_time(option("train_until"))
    found = moment(until, zone)
    if np.isnat(found):
        raise ConfigError(
            f"{option('train_until', until)}: not a time; write 2026-03-01 or 2026-03-01T12:00"
        )
    return int(np.searchsorted(table.time, found))


def fit_detector(
    config: VACEConfig, training: TrainingRows, progress: Progress
) -> tuple[VACE, list[str]]:
    """Fit a detector; also return notes on the fit."""
    pieces = [piece for part in training.tables for piece in _pieces(part, training.rows)]
    pieces, silent = _without_silent(pieces)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VaceWarning)
        faults = list(dict.fromkeys(one for part in training.tables for one in part.faults))
        detector = VACE(**config.to_dict()).fit(pieces, labels=faults or None, progress=progress)
    notes = [str(w.message) for w in caught if issubclass(w.category, VaceWarning)]
    for other in caught:
        if not issubclass(other.category, VaceWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    notes += [str(note["words"]) for note in detector.facts_.get("training", ())]
    return detector, silent + notes


def _pieces(part: Loaded, rows: int | None) -> list[Table]:
    """The training rows, cut where rows are left out; the fit itself cuts where time jumps."""
    end = len(part.table) if rows is None else rows
    kept = np.ones(end, bool) if part.normal is None else part.normal[:end]
    return [part.table[a:b] for a, b in run_edges(kept).tolist()]


def _without_silent(pieces: Sequence[Table]) -> tuple[list[Table], list[str]]:
    """The pieces without channels that have no value in them, such as one that starts later."""
    if not pieces:
        return [], []
    names = pieces[0].names
    silent = np.all([missing_cells(piece.values).all(axis=0) for piece in pieces], axis=0)
    if not silent.any() or silent.all():
        return list(pieces), []
    kept = np.flatnonzero(~silent).tolist()
    left = [repr(name) for name, out in zip(names, silent, strict=True) if out]
    note = (
        f"left out, since no training row has a value of it: {listed(left)}; it can be learned "
        "once it is there in training"
    )
    return [one.select(kept) for one in pieces], [note]


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
    alarming: Alarming
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
            "budget": asdict(self.alarming.budget),
            "rules": asdict(self.alarming.rules),
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
    progress: Progress = silent,
) -> Run:
    """Fit on the training rows, find the events of the others."""
    clocks = [table.clock.step for table in training.tables]
    alarming.budget.rate(clocks[0] or alarming.step)  # a budget in time without time too
    detector, notes = fit_detector(config, training, progress)
    return detect_with(detector, loaded, training, alarming, progress, notes=notes)


def detect_with(
    detector: VACE,
    loaded: Loaded,
    training: TrainingRows,
    alarming: Alarming,
    progress: Progress = silent,
    *,
    notes: Sequence[str] = (),
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
    return Run(loaded, detector, found, replace(alarming, budget=budget), training, every)


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
