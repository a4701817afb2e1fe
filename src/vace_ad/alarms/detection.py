"""The events of a table, its missing data, its near misses, and the scores behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarm_model import log_scores
from vace_ad.alarms.alarm_stream import Change
from vace_ad.alarms.budget import Threshold
from vace_ad.alarms.events import ANOMALY, NEAR_MISS, NO_DATA, Event, with_time
from vace_ad.alarms.evidence import Baseline
from vace_ad.alarms.learned import Learned
from vace_ad.alarms.suppression import Stretch
from vace_ad.frames.calendar import Calendar
from vace_ad.frames.idle import Stretch as Idle
from vace_ad.frames.idle import idle_rows
from vace_ad.frames.sampling import StepTracker
from vace_ad.frames.segments import missing_cells, run_edges
from vace_ad.frames.table import Table
from vace_ad.frames.timestamps import time_words
from vace_ad.signals.row_buffer import ordered_sum

Array = NDArray[np.float64]

NEAR_MISSES = 5  # reported at most
NEAR = 0.3  # of the limit that a near miss has at least
DRIFTED = 0.1  # of the rows at another level than training that are worth a note
NEAR_ROWS = 48  # from an event that it lies away at least


class Planned(Learned, Protocol):
    """What events of tables need of a model."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The channels that tables have."""

    @property
    def calendar(self) -> Calendar:
        """What the time of a row explains."""


class StreamResult(NamedTuple):
    """What a stream said of all rows of a table."""

    changes: Sequence[Change]
    evidence: Array  # (n_rows,), over its limit; NaN: none
    surprise: Array  # (n_rows,), in nats; NaN: none


@dataclass(frozen=True)
class Found:
    """What was found in a table."""

    scores: Array  # (n_rows,), NaN where a row has no score
    signals: Mapping[str, Array]  # the evidence that adds up to the score, each (n_rows,)
    evidence: Array  # (n_rows,), alarm evidence over its limit: above 1 is an alarm; NaN: none
    surprise: Array  # (n_rows,), nats of the most surprising cell; NaN: none
    threshold: Threshold  # the budget in words, and what to be careful about
    events: tuple[Event, ...]  # in order of row
    near_misses: tuple[Event, ...]  # the strongest stretches below the limit, strongest first
    notes: tuple[str, ...]
    accepted: tuple[Event, ...] = ()  # stretches like one that a person called normal: no events
    idle: tuple[Idle, ...] = ()  # stretches that were not judged: off, or under maintenance

    @property
    def limits(self) -> Array:
        """The limit of the evidence at each row, (n_rows,): 1; NaN where a row has no evidence."""
        return np.where(np.isnan(self.evidence), np.nan, 1.0)

    @property
    def anomalies(self) -> tuple[Event, ...]:
        """The events except missing data and conditions outside training."""
        return tuple(event for event in self.events if event.kind == ANOMALY)

    @property
    def predictions(self) -> NDArray[np.int8]:
        """1 for each row of an anomaly, 0 for all others, (n_rows,)."""
        rows = np.zeros(len(self.scores), dtype=np.int8)
        for event in self.anomalies:
            rows[event.start : event.end] = 1
        return rows

    @property
    def unit_scores(self) -> Array:
        """A score from 0 to 1 for each row: severity / 100 of its anomaly, 0 outside; NaN: none."""
        rows = np.where(np.isnan(self.evidence), np.nan, 0.0)
        for event in self.anomalies:
            part = rows[event.start : event.end]
            np.fmax(part, event.unit_score, out=part)
        return rows


def find_events(
    model: Planned,
    table: Table,
    signals: Mapping[str, Array],
    judged: StreamResult,
    threshold: Threshold,
    *,
    first: int = 0,
    accepted: Sequence[Stretch] = (),
) -> Found:
    """What was found in a table whose rows were judged.

    Rows before `first`, such as those of the training, make no events. `accepted` are the stretches
    whose patterns were taken out of the table.
    """
    steps = StepTracker(model.step_rule).add(table.time, len(table))
    idle = idle_rows(model.idle, table.block(0, len(table)), table.time, table.zone)
    still = idle.any
    evidence = np.where(np.arange(len(table)) < first, np.nan, judged.evidence)
    events = [
        change.event
        for change in judged.changes
        if change.what == "resolve" and change.event.end > first
    ]
    runs = np.array([[event.start, event.end] for event in events], np.intp).reshape(-1, 2)
    missed = [
        _near_miss(start, end, evidence, judged.surprise)
        for start, end in near_misses(evidence, runs, NEAR_ROWS).tolist()
    ]
    own = table.first(len(model.inputs))
    missing = no_data_events(
        (np.where(still[:, None], 0, own.values) if still.any() else own.values)[first:],
        own.names,
        longer_than=model.config.max_gap,
        time=None if table.time is None else table.time[first:],
        step=model.step,
        gaps=[
            row - first
            for row in steps.cuts()
            if row > first and not still[row - 1 : row + 1].any()
        ],
    )
    if table.time is not None:
        events = [with_time(event, table.time) for event in events]
        missed = [with_time(event, table.time) for event in missed]
    events += [_moved(event, first) for event in missing]
    events.sort(key=lambda event: (event.start, event.end))
    scores = ordered_sum(signals.values())
    return Found(
        scores,
        dict(signals),
        evidence,
        judged.surprise,
        threshold,
        tuple(events),
        tuple(missed),
        (
            *((threshold.note,) if threshold.note else ()),
            *_outdated(model, table, first),
            *_outside(model, table, first),
            *_drifted(model, scores, events, first),
        ),
        accepted=accepted_events(accepted, table, first),
        idle=idle.stretches(),
    )


def _outdated(model: Planned, table: Table, first: int) -> list[str]:
    """That all planned windows or holidays lie in the past, in words."""
    windows = model.idle.windows(table.zone)
    dates = model.calendar.outdated(table, first)
    if table.time is None or first >= len(table) or not len(windows):
        return dates
    last = windows[:, 1].max()
    if last > table.time[first]:
        return dates
    when = time_words(last, table.zone)
    return [f"the last planned window of maintenance ended on {when}, before these rows: is the "
            "calendar up to date?", *dates]  # fmt: skip


def _outside(model: Learned, table: Table, first: int) -> list[str]:
    """That conditions were outside training, in words."""
    if model.watched.all():
        return []
    rows = table.block(first, len(table))
    outside = model.conditions.outside(rows, model.channels, model.watched).any(axis=1)
    n = int(outside.sum())
    if not n:
        return []
    words = model.conditions.words(rows, model.channels, model.watched)
    return [f"conditions outside training in {n:,} rows: {words}; alarms there are marked"]


def _drifted(model: Learned, scores: Array, events: Sequence[Event], first: int) -> list[str]:
    """That the score of many rows is at another level than in training, in words.

    Of a passing event it says nothing, nor of the rows after it until the recent level has fallen.
    """
    own = log_scores(scores[first:])
    level, _ = Baseline(1).follow(own)
    off = (model.alarm.outdated(np.minimum(level, own)) > 1)[:, 0]
    for event in events:
        if event.kind == ANOMALY and not event.lasting:
            off[max(event.start - first, 0) : max(event.end - first, 0)] = False
    share = float(off.mean()) if len(off) else 0.0
    if share < DRIFTED:
        return []
    return [f"in {share:.0%} of the rows the recent score is more than 1.4 times as high as in "
            "training: the model is out of date there, and single channels raise fewer alarms; "
            "train on recent rows"]  # fmt: skip


def near_misses(evidence: Array, runs: NDArray[np.intp], apart: int) -> NDArray[np.intp]:
    """The strongest stretches (n, 2) whose evidence stayed below its limit, away from events."""
    free = evidence.copy()
    for start, end in runs.tolist():
        free[max(0, start - apart) : end + apart] = np.nan
    found: list[tuple[int, int]] = []
    while len(found) < NEAR_MISSES and not np.isnan(free).all():
        peak = int(np.nanargmax(free))
        if not free[peak] >= NEAR:
            break
        low = np.flatnonzero(~(free >= 0.5 * free[peak]))  # where the stretch has ended
        start = int(low[low < peak].max(initial=-1)) + 1
        end = int(low[low > peak].min(initial=len(free)))
        if free[peak] <= 1:  # an event's evidence falls back slowly
            found.append((start, end))
        free[max(0, start - apart) : end + apart] = np.nan
    return np.array(found, dtype=np.intp).reshape(-1, 2)


def _near_miss(start: int, end: int, evidence: Array, surprise: Array) -> Event:
    peak = start + int(np.nanargmax(np.nan_to_num(surprise[start:end])))
    ratio = float(np.nanmax(evidence[start:end]))
    return Event(start, end, peak, NEAR_MISS, score=float(surprise[peak]), ratio=ratio)


def tolerance(stretches: Sequence[Stretch], n: int, reach: int) -> Array | None:
    """What divides the evidence of each row (n,): more where an accepted pattern left traces."""
    if not stretches:
        return None
    tolerance = np.ones(n)
    for stretch in stretches:
        near = tolerance[max(0, stretch.start - reach) : stretch.end + reach]
        np.maximum(near, stretch.allowance, out=near)
        if stretch.named:  # as far as rows were joined to the event that was named
            tolerance[max(0, stretch.start - reach // 2) : stretch.end + reach // 2] = np.inf
    return tolerance


def accepted_events(stretches: Sequence[Stretch], table: Table, first: int) -> tuple[Event, ...]:
    """Stretches that were recognised as accepted, from row `first` on, as events of their kind."""
    found = []
    for stretch in sorted(stretches, key=lambda one: one.start):
        if stretch.end > first:
            event = stretch.event()
            found.append(event if table.time is None else with_time(event, table.time))
    return tuple(found)


def _moved(event: Event, rows: int) -> Event:
    return replace(event, start=event.start + rows, end=event.end + rows, peak=event.peak + rows)


def no_data_events(
    values: NDArray[np.float64],
    names: Sequence[str],
    *,
    longer_than: int,
    time: NDArray[np.datetime64] | None = None,
    step: int | None = None,
    gaps: Sequence[int] = (),
) -> list[Event]:
    """Where measurements are missing for more than `longer_than` rows, in order of row.

    A jump in time before row `g` of `gaps` lies between rows, so its event is `[g, g)`. Channels
    that fall silent together make one event, which names them.
    """
    events = []
    if time is not None and step is not None:
        for row in gaps:
            missing = round(float(time[row] - time[row - 1]) / step) - 1
            if missing > longer_than:
                events.append(with_time(Event(row, row, row, NO_DATA), time))
    for (start, end), silent in _silences(values, longer_than).items():
        share = 1.0 / len(silent)
        blamed = [(names[channel], share) for channel in silent]
        event = Event(start, end, start, NO_DATA).with_blame(blamed)
        events.append(event if time is None else with_time(event, time))
    return sorted(events, key=lambda event: (event.start, event.end))


def _silences(values: NDArray[np.float64], longer_than: int) -> dict[tuple[int, int], list[int]]:
    """Row ranges without a measurement, and the channels that are silent over exactly them."""
    found: dict[tuple[int, int], list[int]] = {}
    missing = missing_cells(values)
    for channel in np.flatnonzero(missing.any(axis=0)).tolist():
        for start, end in run_edges(missing[:, channel]).tolist():
            if end - start > longer_than:
                found.setdefault((start, end), []).append(channel)
    return found
