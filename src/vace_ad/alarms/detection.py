"""A table and a fitted detector to events: score, threshold, join, blame."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.budget import Budget, Threshold, choose_threshold
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.events import ANOMALY, Event, events_from_scores
from vace_ad.alarms.explain import TOTAL, Blame, Explainer, ScoreRows, focus
from vace_ad.alarms.runs import Rules
from vace_ad.alarms.silence import no_data_events, with_breaks
from vace_ad.errors import VaceWarning
from vace_ad.frames.table import Table
from vace_ad.frames.time import TimeReport, check_time
from vace_ad.progress import Progress, silent

Array = NDArray[np.float64]


class _Config(Protocol):
    @property
    def patch_length(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def max_gap(self) -> int: ...
    @property
    def drift_half_life(self) -> int: ...


class Detector(Protocol):
    """What alarms need of a fitted detector."""

    channels_: tuple[str, ...]
    reference_: Array  # (n_stretches, n_rows, n_channels)
    facts_: dict[str, Any]

    @property
    def config(self) -> _Config:
        """The settings."""

    @property
    def calibration_(self) -> Calibration:
        """How scores are distributed in normal operation."""

    def used_to(self, data: Any) -> Any:
        """What the detector is used to after some rows."""

    def signals(
        self, data: Any, *, used: Any = None, progress: Progress = silent
    ) -> Mapping[str, Array]:
        """The evidence that adds up to the score, each (n_rows,), after what it is `used` to."""


@dataclass(frozen=True)
class Detection:
    """What was found in a table."""

    scores: Array  # (n_rows,), NaN where no patch covers a row
    signals: Mapping[str, Array]  # the evidence that adds up to the score, each (n_rows,)
    threshold: Threshold
    events: tuple[Event, ...]  # in order of row
    notes: tuple[str, ...]

    @property
    def anomalies(self) -> tuple[Event, ...]:
        """The events that scores made, without those of missing data."""
        return tuple(event for event in self.events if event.kind == ANOMALY)

    @property
    def predictions(self) -> NDArray[np.int8]:
        """1 for the rows of anomalies, 0 for all others."""
        rows = np.zeros(len(self.scores), dtype=np.int8)
        for event in self.anomalies:
            rows[event.start : event.end] = 1
        return rows


def detect(
    detector: Detector,
    table: Table,
    *,
    budget: Budget | None = None,
    rules: Rules | None = None,
    first: int = 0,
    step: int | None = None,
    explain: int = 20,
    progress: Progress = silent,
) -> Detection:
    """Find the events of a table.

    `rules` default to joining events nearer than half a patch. Rows before `first`, such as
    those of the training, make no events. `step` is the time between rows in nanoseconds where
    the table has no time. The `explain` most severe events get their channels; the others'
    stay empty.
    """
    table = table.aligned(detector.channels_)
    config = detector.config
    rules = rules or Rules(join=config.patch_length // 2)
    clock = check_time(table.time) if table.time is not None else TimeReport(None, None, None)
    signals, notes = score_rows(detector, table, clock.gaps, progress)
    scores = signals.pop(TOTAL)
    threshold = choose_threshold(
        budget or Budget(),
        detector.calibration_,
        rules,
        clock.step or step or _fitted_step(detector),
    )
    heard = scores.copy()
    heard[:first] = np.nan
    events = events_from_scores(
        heard, threshold.value, rules=rules, tail=detector.calibration_.tail, time=table.time
    )
    events = _blamed(detector, table, scores, events, explain, progress)
    missing = no_data_events(
        table.values[first:],
        table.names,
        longer_than=config.max_gap,
        time=None if table.time is None else table.time[first:],
        step=clock.step,
        gaps=[row - first for row in clock.gaps if row > first],
    )
    events += [_moved(event, first) for event in missing]
    events.sort(key=lambda event: (event.start, event.end))
    notes += [threshold.note] if threshold.note else []
    return Detection(scores, signals, threshold, tuple(events), tuple(notes))


def score_rows(
    detector: Detector, table: Table, gaps: Sequence[int], progress: Progress = silent
) -> tuple[dict[str, Array], list[str]]:
    """All signals of a table whose rows are not next to each other where time jumps.

    Missing rows are put in at the jumps, so that no patch reaches across, and taken out of the
    answer. The detector's warnings come back as notes.
    """
    values, kept = with_breaks(table.values, gaps, detector.config.max_gap + 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VaceWarning)
        found = detector.signals(Table(values, table.names, None, table.named), progress=progress)
    for warning in caught:
        if not issubclass(warning.category, VaceWarning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    signals = _with_total({name: np.asarray(rows)[kept] for name, rows in found.items()})
    uncovered = int(np.isnan(signals[TOTAL]).sum())
    notes = [f"{uncovered:,} of {len(table):,} rows have no score: no complete patch covers them"]
    return signals, notes if uncovered else []


def make_explainer(detector: Detector) -> Explainer:
    """An explainer that scores windows with this detector."""
    config = detector.config

    def scorer_after(history: Array) -> ScoreRows:
        used = detector.used_to(Table(history, detector.channels_)) if len(history) else None

        def score(window: Array) -> dict[str, Array]:
            with warnings.catch_warnings():
                # Rows without a score have no evidence, which the explainer expects.
                warnings.simplefilter("ignore", VaceWarning)
                return _with_total(detector.signals(Table(window, detector.channels_), used=used))

        return score

    return Explainer(
        scorer_after,
        detector.channels_,
        np.asarray(detector.reference_, dtype=np.float64),
        before=config.patch_length + config.offset,
        after=config.patch_length,
        memory=4 * config.drift_half_life,
    )


def explain_rows(detector: Detector, table: Table, start: int, end: int) -> Blame:
    """Each channel's share of the score of rows `[start, end)`, and of each signal."""
    table = table.aligned(detector.channels_)
    return make_explainer(detector).explain(table.values, start, end)


def _blamed(
    detector: Detector,
    table: Table,
    scores: Array,
    events: list[Event],
    most: int,
    progress: Progress,
) -> list[Event]:
    """The most severe events with their channels; of long events the loudest rows are judged."""
    worst = sorted(range(len(events)), key=lambda i: -events[i].severity)[:most]
    if not worst:
        return events
    explainer = make_explainer(detector)
    events = list(events)
    for done, i in enumerate(sorted(worst)):
        progress("explaining", done, len(worst))
        rows = focus(scores, events[i].start, events[i].end, detector.config.patch_length // 2)
        blame = explainer.explain(table.values, *rows)
        events[i] = events[i].with_blame(blame.top(len(blame.names)), blame.signal)
    progress("explaining", len(worst), len(worst))
    return events


def _with_total(signals: Mapping[str, Array]) -> dict[str, Array]:
    """The signals and their sum, which is the score."""
    return {**signals, TOTAL: np.sum(list(signals.values()), axis=0)}


def _fitted_step(detector: Detector) -> int | None:
    seconds = detector.facts_.get("step_seconds")
    return None if seconds is None else round(seconds * 1e9)


def _moved(event: Event, rows: int) -> Event:
    return replace(event, start=event.start + rows, end=event.end + rows, peak=event.peak + rows)
