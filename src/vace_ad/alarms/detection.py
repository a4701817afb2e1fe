"""Signals of a table to events: threshold, join, blame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarming import Alarming, Learned, near_misses
from vace_ad.alarms.blame import Blame, blame, suspicion
from vace_ad.alarms.budget import Budget, Threshold
from vace_ad.alarms.events import ANOMALY, NEAR_MISS, Event, with_time
from vace_ad.alarms.recognise import Stretch
from vace_ad.alarms.refine import sharpen
from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.alarms.silence import no_data_events
from vace_ad.frames.steps import StepTracker
from vace_ad.frames.table import Table
from vace_ad.progress import Progress, silent
from vace_ad.signals.rows import added

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """What was found in a table."""

    scores: Array  # (n_rows,), NaN where a row has no score
    signals: Mapping[str, Array]  # the evidence that adds up to the score, each (n_rows,)
    threshold: Threshold  # what held-out training scores alone would set; `limits` were applied
    limits: Array  # (n_rows,), the threshold of each row, as a score
    events: tuple[Event, ...]  # in order of row
    near_misses: tuple[Event, ...]  # the strongest stretches below the threshold, strongest first
    budgets: Mapping[str, int]  # how many anomalies other budgets would have given
    notes: tuple[str, ...]
    accepted: tuple[Event, ...] = ()  # stretches like one that a person called normal: no events

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


def find_events(
    model: Learned,
    table: Table,
    signals: Mapping[str, Array],
    *,
    budget: Budget | None = None,
    rules: Rules | None = None,
    first: int = 0,
    step: int | None = None,
    accepted: Sequence[Stretch] = (),
    progress: Progress = silent,
) -> Found:
    """The events of a table whose signals are known.

    `rules` default to joining events nearer than half a patch. Rows before `first`, such as
    those of the training, make no events. `step` is the time between rows in nanoseconds where
    the table has no time. `accepted` are the stretches whose patterns were taken out of the table.
    """
    steps = StepTracker(model.step_rule).add(table.time, len(table))
    alarming = Alarming.of(model, budget, rules, step)
    scores = added(signals.values())
    judged = alarming.watcher().add(scores[first:])
    ratio = np.concatenate([np.full(first, np.nan), judged.ratio])
    limits = np.concatenate([np.full(first, np.nan), judged.limit])
    ratio = ratio / _borne(accepted, len(ratio), model.config.length)
    runs = runs_above(ratio, 1.0, alarming.rules)
    sharp = sharpen(table.values, runs, ratio, first, model)
    events = []
    for done, (run, (start, end)) in enumerate(zip(runs.tolist(), sharp.tolist(), strict=True)):
        progress("explaining", done, len(runs))
        event = alarming.event(scores, ratio, run, (start, end))
        found = explain(model, table, signals, event.start, event.end)
        events.append(event.with_blame(found.top(len(found.names)), found.signal))
    missed = [
        alarming.event(scores, ratio, run, run, NEAR_MISS)
        for run in near_misses(ratio, runs, alarming.rules.join).tolist()
    ]
    missing = no_data_events(
        table.values[first:],
        table.names,
        longer_than=model.config.max_gap,
        time=None if table.time is None else table.time[first:],
        step=model.step,
        gaps=[row - first for row in steps.cuts() if row > first],
    )
    if table.time is not None:
        events = [with_time(event, table.time) for event in events]
        missed = [with_time(event, table.time) for event in missed]
    events += [_moved(event, first) for event in missing]
    events.sort(key=lambda event: (event.start, event.end))
    note = alarming.threshold.note
    return Found(
        scores,
        dict(signals),
        alarming.threshold,
        limits,
        tuple(events),
        tuple(missed),
        alarming.other_budgets(ratio),
        (note,) if note else (),
        accepted=accepted_events(accepted, table, first),
    )


def _borne(stretches: Sequence[Stretch], n: int, reach: int) -> Array:
    """Evidence over threshold that is borne at each row (n,): more where a pattern left traces."""
    borne = np.ones(n)
    for stretch in stretches:
        near = borne[max(0, stretch.start - reach) : stretch.end + reach]
        np.maximum(near, stretch.allowance, out=near)
        if stretch.named:  # as far as rows were joined to the event that was named
            borne[max(0, stretch.start - reach // 2) : stretch.end + reach // 2] = np.inf
    return borne


def accepted_events(stretches: Sequence[Stretch], table: Table, first: int) -> tuple[Event, ...]:
    """Stretches that were recognised as accepted, from row `first` on, as events of their kind."""
    found = []
    for stretch in sorted(stretches, key=lambda one: one.start):
        if stretch.end > first:
            event = stretch.event()
            found.append(event if table.time is None else with_time(event, table.time))
    return tuple(found)


def explain(
    model: Learned, table: Table, signals: Mapping[str, Array], start: int, end: int
) -> Blame:
    """The channels that rows [start, end) are due to, and the evidence that contributed most."""
    found = suspicion(table.values, start, end, model.normal, model.wander, model.period)
    return blame(table.names, found, leading(signals, start, end))


def leading(signals: Mapping[str, Array], start: int, end: int) -> str | None:
    """The signal that rose highest above its usual level in rows [start, end)."""
    rises = {}
    for name, line in signals.items():
        inside = line[start:end][~np.isnan(line[start:end])]
        known = line[~np.isnan(line)]
        if len(inside):
            rises[name] = float(inside.max()) - float(np.median(known))
    return max(rises, key=lambda name: rises[name]) if rises else None


def _moved(event: Event, rows: int) -> Event:
    return replace(event, start=event.start + rows, end=event.end + rows, peak=event.peak + rows)
