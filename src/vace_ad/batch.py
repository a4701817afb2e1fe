"""A whole series is a stream run to its end: its scores, its events, its expected values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarm_model import Expected
from vace_ad.alarms.budget import Threshold
from vace_ad.alarms.detection import Found, StreamResult, find_events, tolerance
from vace_ad.alarms.evidence import UNIT
from vace_ad.alarms.fixed_threshold import ScoreFeed
from vace_ad.alarms.suppression import Stretch
from vace_ad.alarms.suspects import Blame, blame, suspicion
from vace_ad.errors import InputError, TooShortError, VaceWarning
from vace_ad.feedback import Feedback, merge_matches, named_stretches
from vace_ad.frames.idle import idle_rows
from vace_ad.frames.sampling import StepTracker
from vace_ad.frames.segments import Rules, missing_cells, run_edges
from vace_ad.frames.table import Table, as_chunks
from vace_ad.model import Model
from vace_ad.progress import Progress, silent
from vace_ad.settings import option
from vace_ad.signals.row_buffer import ordered_sum
from vace_ad.stream import SLAB, Added, Stream

Array = NDArray[np.float64]

LEAD = 4096  # rows before those to explain that set the recent baseline


class Scored(NamedTuple):
    """What a stream said of a whole series."""

    signals: Mapping[str, Array]  # (n_rows,) each
    scores: Array  # (n_rows,), their sum
    judged: StreamResult


def run(
    stream: Stream,
    data: Any,
    progress: Progress = silent,
    *,
    first: int = 0,
    tolerated: Array | None = None,
) -> Iterator[Added]:
    """What a stream says of a table, or of one that comes in chunks, as rows become complete.

    Alarms begin at row `first`; `tolerated` (n_rows,) divides the evidence of each row.
    """
    model, chunks = stream.model, as_chunks(data)
    for chunk in [data] if chunks is None else chunks:
        table = model.table(chunk)
        a = 0
        while a < len(table):
            row = stream.n_rows
            if first and row == first:
                stream.judge_afresh()
            b = min(a + SLAB, len(table), a + first - row if row < first else len(table))
            found = stream.add_table(
                table[a:b], None if tolerated is None else tolerated[row : row + b - a]
            )
            progress("scoring", b, len(table))
            yield found
            a = b
    yield stream.finish()
    if stream.n_rows < model.reach:
        raise TooShortError(f"got {stream.n_rows} rows; a score needs at least {model.reach}")


def scores_to_end(stream: Stream, data: Any, progress: Progress) -> Array:
    """The scores of a series alone; no other evidence is kept."""
    parts = [(part.scores, int(part.idle.sum())) for part in run(stream, data, progress)]
    scores = np.concatenate([part for part, _ in parts])
    _check_scored(stream, scores, sum(idle for _, idle in parts))
    return scores


def run_to_end(
    stream: Stream,
    data: Any,
    progress: Progress,
    *,
    first: int = 0,
    tolerated: Array | None = None,
) -> Scored:
    """All that a stream says of a series; rows without a score are warned of, or refused."""
    parts = list(run(stream, data, progress, first=first, tolerated=tolerated))
    signals = {
        name: np.concatenate([part.signals[name] for part in parts]) for name in stream.model.lines
    }
    scores = ordered_sum(signals.values())
    _check_scored(stream, scores, sum(int(part.idle.sum()) for part in parts))
    judged = StreamResult(
        [change for part in parts for change in part.changes],
        np.concatenate([part.evidence for part in parts]),
        np.concatenate([part.surprise for part in parts]),
    )
    return Scored(signals, scores, judged)


def without_accepted(model: Model, feedback: Feedback, table: Table) -> tuple[Table, list[Stretch]]:
    """The table without what accepted patterns explain, and where that was."""
    if not feedback.active:
        return table, []
    named = named_stretches(feedback.active, table)
    patterns = feedback.patterns
    if not patterns:
        return table, named
    recogniser = model.recogniser(patterns)
    steps = StepTracker(model.step_rule).add(table.time, len(table))
    rows, _, found = recogniser.add(table.block(0, len(table)), steps.cuts())
    return replace(table, values=rows), merge_matches(found + recogniser.finish(), named)


def judged_table(
    stream: Stream,
    feedback: Feedback,
    table: Table,
    rules: Rules | None,
    progress: Progress,
    first: int,
) -> tuple[Found, list[str]]:
    """The events of a table from row `first` on, and what was warned of on the way.

    What looks like a stretch that a person accepted is taken out first.
    """
    model = stream.model
    table, accepted = without_accepted(model, feedback, table)
    tolerated = tolerance(accepted, len(table), model.config.length)
    stream.tolerate({name for stretch in accepted for name in stretch.channels})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VaceWarning)
        scored = run_to_end(stream, table, progress, first=first, tolerated=tolerated)
    judged = scored.judged
    if not len(judged.evidence):  # a person gave the threshold
        judged = _judge_scores(model, table, scored.scores, stream.threshold, rules, first)
    found = find_events(
        model, table, scored.signals, judged, stream.threshold, first=first, accepted=accepted
    )
    return found, [str(warning.message) for warning in caught]


def _judge_scores(
    model: Model,
    table: Table,
    scores: Array,
    threshold: Threshold,
    rules: Rules | None,
    first: int,
) -> StreamResult:
    """Rows judged by a threshold of the score that a person gave."""
    feed = ScoreFeed(model, threshold.value, rules)
    late = np.where(np.arange(len(scores)) < first, np.nan, scores)
    changes = [*feed.add(table.block(0, len(table)), table.time, late), *feed.finish()]
    return StreamResult(
        changes, scores / threshold.value if threshold.value > 0 else scores, scores
    )


def _check_scored(stream: Stream, scores: Array, idle: int) -> None:
    """Say how many rows have no score and why; refuse an answer that has none at all.

    Rows that are `idle` need none.
    """
    missing = int(np.isnan(scores).sum()) - idle
    if np.isinf(scores).any():
        raise InputError(
            f"the score of row {int(np.flatnonzero(~np.isfinite(scores))[0])} is not finite: "
            "cells are too large to compute with, or the model is; check the data, fit again"
        )
    config, reach = stream.model.config, stream.model.reach
    if idle and idle == len(scores):
        raise InputError(
            f"all {idle:,} rows are off or under maintenance, so there is nothing to judge; "
            f"check {option('off', config.off)} and {option('maintenance')}"
        )
    if missing == len(scores) - idle:
        reason = stream.trouble or (
            f"each has more than {config.max_missing:.0%} of its channels missing, or lies in a "
            f"stretch shorter than {reach} rows; check the data, or allow more by max_missing"
        )
        raise InputError(f"none of the {missing:,} rows can be scored: {reason}")
    if missing:
        reason = stream.trouble or (
            f"too many channels are missing there, or too few of the {reach} rows that a "
            "score needs around it"
        )
        warnings.warn(
            f"{missing} of {len(scores)} rows have no score (NaN): {reason}",
            VaceWarning,
            stacklevel=4,
        )


def expected_cells(
    model: Model, table: Table, channels: Sequence[int], kind: str = "float64"
) -> tuple[Array, Expected]:
    """Nats of some channels' cells, and what they should have been, (n_rows, k) each.

    NaN where a row is incomplete. The baseline goes on across gaps, as that of alarms does.
    """
    n, place = len(table), np.asarray(channels, np.intp)
    found = np.full((4, n, len(place)), np.nan, kind)
    baseline = model.alarm.baseline()
    for start, end in _complete(model, table):
        cells = model.alarm.cells.begin()
        for a in range(start, end, SLAB):
            b = min(a + SLAB, end)
            rows = table.block(a, b)
            none = np.full(len(rows), np.nan)  # scores change no expectation
            nats, _, expected = model.alarm.judge(rows, cells.add(rows), none, baseline)
            now, past = np.split(nats, 2, axis=1)
            found[0, a:b] = (now + past)[:, place] / UNIT
            found[1:, a:b] = [each[:, place] for each in expected]
    return found[0], Expected(*found[1:])


def expected_columns(model: Model, table: Table) -> dict[str, Array]:
    """Values, expected values and intervals of all channels but those of the calendar."""
    _, expected = expected_cells(model, table, range(len(model.inputs)))
    columns: dict[str, Array] = {}
    for i, name in enumerate(model.inputs):
        columns[name] = table.values[:, i]
        for words, curve in expected._asdict().items():
            columns[f"{name} {'expected' if words == 'value' else words}"] = curve[:, i]
    return columns


def explain_rows(model: Model, table: Table, start: int, end: int) -> Blame:
    """Each channel's share of what happened in rows [start, end)."""
    first = max(0, start - LEAD)
    cells, _ = expected_cells(model, table[first:end], range(len(table.names)))
    values, nats, ranges = table.values, cells[start - first :], model.drift_range
    found = suspicion(values, start, end, model.normal, ranges, nats, model.period)
    return blame(table.names, np.where(model.watched, found, 0.0))


def _complete(model: Model, table: Table) -> list[tuple[int, int]]:
    """Rows [start, end) that follow each other and miss nothing."""
    n = len(table)
    whole = np.empty(n, bool)
    for a in range(0, n, SLAB):
        b = min(a + SLAB, n)
        whole[a:b] = ~missing_cells(table.block(a, b)).any(axis=1)
    whole &= ~idle_rows(model.idle, table.block(0, n), table.time, table.zone).any
    edges = np.unique([0, *StepTracker(model.step_rule).add(table.time, n).cuts(), n])
    return [
        (a + low, a + high)
        for a, b in pairwise(edges.tolist())
        for low, high in run_edges(whole[a:b]).tolist()
    ]
