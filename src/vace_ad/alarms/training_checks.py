"""Checks of the training rows: contamination, length, coverage and drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarm_model import AlarmModel
from vace_ad.alarms.sheet import Sheet, off_condition, sheet
from vace_ad.frames.columns import column_of
from vace_ad.frames.segments import run_edges
from vace_ad.frames.table import Table
from vace_ad.frames.time import duration_words
from vace_ad.frames.timestamps import local_time
from vace_ad.frames.training_data import TrainingPart
from vace_ad.signals.baseline_model import medians
from vace_ad.signals.protocol import Seasonality

Array = NDArray[np.float64]
Range = tuple[int, int]

LEAVE_OUT_MOST = 0.05  # of the rows; more of them is how the training is
_FEWEST_PATCHES = 5  # that training should hold
_DAY = 86_400.0  # seconds
_SLOW = 1.0  # seconds a row; faster recordings are of trials, where days mean nothing
_APART = 3.0  # deviations within a quarter between the first and the last one, of a drift
_VALUES = 10  # that a channel must take at least to drift; others are switches


@dataclass(frozen=True)
class TrainingNote:
    """Something about the training rows that a person should know, and what to do."""

    kind: Literal["contaminated", "short", "span", "drift", "off", "mode"]
    words: str
    rows: tuple[Range, ...] = ()  # [start, end), counted over all tables that were given
    times: tuple[tuple[str, str], ...] = ()  # of the first and the last of these rows

    def to_plain(self) -> dict[str, Any]:
        """Plain values, for the facts of a fit."""
        rows, times = ([list(pair) for pair in each] for each in (self.rows, self.times))
        return {"kind": self.kind, "words": self.words, "rows": rows, "times": times}


@dataclass(frozen=True)
class TrainingAudit:
    """Training rows in the form in which they are looked at."""

    tables: Sequence[Table]  # as they were given
    parts: Sequence[TrainingPart]  # what was learned from
    length: int  # rows of a patch
    seasonality: Seasonality
    step_seconds: float | None
    whole: bool = True  # whether the tables are all that was given, so that rows can be counted
    off: str | None = None  # the condition that was given

    def notes(self, stretches: NDArray[np.int64], left_out: bool) -> list[TrainingNote]:
        """Everything that a person should know; `stretches` (j, 2) are ranges of learned rows."""
        every = (
            self._contaminated(stretches, left_out),
            self._short(),
            self._span(),
            self._drift(),
            self._standstill(),
            self._rare_mode(),
        )
        return [note for note in every if note is not None]

    def sheet(self, notes: Sequence[TrainingNote]) -> Sheet:
        """The verdict on the training data."""
        rows = [part.rows for part in self.parts]
        few = sum(map(len, rows)) < 8 * self.length
        drifting = np.zeros(rows[0].shape[1], bool) if few else _moved(np.concatenate(rows))
        return sheet(self.tables, rows, drifting, [note.kind for note in notes])

    def _standstill(self) -> TrainingNote | None:
        """That a machine plainly has an off state, and how to say so."""
        if self.off is not None:
            return None
        condition = off_condition([part.rows for part in self.parts], self.tables[0].names)
        if condition is None:
            return None
        words = (
            f"the machine seems to be off where {condition}: those rows are learned and "
            f"judged like all others; off={condition!r} leaves them out"
        )
        return TrainingNote("off", words)

    def _rare_mode(self) -> TrainingNote | None:
        """That a mode or a product is in too few training rows to be learned."""
        names = self.tables[0].names
        states = [
            i
            for i, name in enumerate(names)
            if column_of(name)
            and all(np.isin(part.rows[:, i], (0, 1)).all() for part in self.parts)
        ]
        count = np.sum([(part.rows[:, states] > 0.5).sum(axis=0) for part in self.parts], axis=0)
        few = [
            (names[i], n) for i, n in zip(states, count.tolist(), strict=True) if n < self.length
        ]
        if not few:
            return None
        named = ", ".join(f"{name} in {n:,}" for name, n in few[:5])
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        words = (
            f"training hardly shows some modes: {named}{more} of {self._n:,} rows; alarms there "
            f"may be false: train on at least {self.length} rows of each, or leave those rows out"
        )
        return TrainingNote("mode", words)

    @property
    def _n(self) -> int:
        return sum(len(part.rows) for part in self.parts)

    def _contaminated(self, stretches: NDArray[np.int64], left_out: bool) -> TrainingNote | None:
        places = [place for stretch in stretches.tolist() for place in self._places(*stretch)]
        if not places:
            return None
        times = tuple(time for place in places if (time := self._times(*place)) is not None)
        where = [f"rows {start:,} to {end:,}" if self.whole else "" for start, end in places]
        if len(times) == len(places):
            spans = [f"{first} to {last}" for first, last in times]
            where = [
                f"{rows} ({span})" if rows else span
                for rows, span in zip(where, spans, strict=True)
            ]
        listed = f" ({'; '.join(where)})" if all(where) else ""
        advice = (
            "left out of training; look, and set robust=False if this is normal operation"
            if left_out
            else "kept in training; look, and train without such rows if they are faults"
        )
        many = f"{len(places)} stretch{'es' * (len(places) > 1)}"
        words = f"the training part holds {many} unlike the rest{listed}: {advice}"
        return TrainingNote("contaminated", words, tuple(places) if self.whole else (), times)

    def _short(self) -> TrainingNote | None:
        needed = _FEWEST_PATCHES * self.length
        if self._n >= needed:
            return None
        words = (
            f"training has {self._n:,} rows, {self._n / self.length:.1f} patches of {self.length}: "
            f"give at least {needed:,} rows, or a smaller patch_length"
        )
        return TrainingNote("short", words)

    def _span(self) -> TrainingNote | None:
        """Less than a day or a week, where rows have times."""
        step = self.step_seconds
        if step is None or step < _SLOW or (covered := self._n * step) >= 7 * _DAY:
            return None
        span, day = duration_words(round(covered * 1e9)), covered < _DAY
        daily = self.seasonality.clear and 0.8 < self.seasonality.period * step / _DAY < 1.2
        unknown = "other hours look" if day else "other days, such as weekends, look"
        words = (
            f"training covers {span}, less than a {'day' if day else 'week'}"
            f"{', and repeats itself every day' if daily else ''}: what {unknown} like is unknown; "
            f"train on a {'day at least, better a week' if day else 'week or more'}"
            f"{'' if daily else ' if operation changes with them'}"
        )
        return TrainingNote("span", words)

    def _drift(self) -> TrainingNote | None:
        """Channels whose first and last quarter hardly overlap, with the others in between."""
        rows = np.concatenate([part.rows for part in self.parts])
        if len(rows) < 8 * self.length:
            return None
        names = self.tables[0].names
        moved = [names[i] for i in np.flatnonzero(_moved(rows)).tolist()]
        if not moved:
            return None
        size = len(rows) // 4
        quarters = [(0, size), (len(rows) - size, len(rows))]
        places = [place for quarter in quarters for place in self._places(*quarter)]
        listed = ", ".join(map(repr, moved[:3])) + (", …" if len(moved) > 3 else "")
        words = (
            f"{len(moved)} of {len(names)} channels drift through the training ({listed}): its "
            "first and last quarter differ; train on newer rows if the old ones are out of date"
        )
        return TrainingNote("drift", words, tuple(places) if self.whole else ())

    def _places(self, start: int, end: int) -> Iterator[Range]:
        """Where learned rows [start, end) lie in the tables, one range a part."""
        first = 0
        for part in self.parts:
            a, b = max(start - first, 0), min(end - first, len(part.rows))
            if a < b:
                yield part.start + a, part.start + b
            first += len(part.rows)

    def _times(self, start: int, end: int) -> tuple[str, str] | None:
        for table in self.tables:
            if start < len(table):
                if table.time is None:
                    return None
                first, last = (
                    local_time(table.time[row], table.zone)
                    for row in (start, min(end, len(table)) - 1)
                )
                return _words(*first), _words(*last)
            start, end = start - len(table), end - len(table)
        return None


def _words(local: np.datetime64, offset: str) -> str:
    return f"{local.astype('datetime64[s]')}{offset}".replace("T", " ")


def _moved(rows: Array) -> NDArray[np.bool_]:
    """Which channels drift, (n_channels,)."""
    quarters = np.array_split(rows, 4)
    middles = np.array([medians(quarter.T.copy()) for quarter in quarters])  # (4, n_channels)
    spread = np.max([quarter.std(axis=0) for quarter in (quarters[0], quarters[-1])], axis=0)
    steps = np.diff(middles, axis=0)
    steady = (steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)
    values = np.array([len(np.unique(column[:: max(1, len(column) // 1000)])) for column in rows.T])
    far = np.abs(middles[-1] - middles[0]) > _APART * spread
    return np.asarray(far & steady & (values >= _VALUES))


def outlying(
    parts: Sequence[TrainingPart], watched: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], AlarmModel | None]:
    """Ranges (j, 2) of training rows that are unlike all others, by cells that did not see them.

    And a model, where `AlarmModel.outlying` gives one.
    """
    inside = np.zeros(sum(len(part.rows) for part in parts), bool)
    found, model = AlarmModel.outlying([part.rows for part in parts], watched)
    for start, end in found:
        inside[start:end] = True
    return np.asarray(run_edges(inside), dtype=np.int64), model


def without(
    parts: Sequence[TrainingPart], stretches: NDArray[np.int64], least: int
) -> list[TrainingPart] | None:
    """The parts without these stretches of rows; pieces of fewer than `least` rows go.

    None where there is nothing to leave out, or too much: then it is how the training is.
    """
    n_rows = sum(len(part.rows) for part in parts)
    if not 0 < np.diff(stretches).sum() <= LEAVE_OUT_MOST * n_rows:
        return None
    kept, first = [], 0
    for part in parts:
        inside = np.clip(stretches - first, 0, len(part.rows))
        edges = [0, *inside.ravel().tolist(), len(part.rows)]
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            if b - a >= least:
                kept.append(TrainingPart(part.start + a, part.rows[a:b]))
        first += len(part.rows)
    enough = sum(len(part.rows) for part in kept) >= (1 - 2 * LEAVE_OUT_MOST) * n_rows
    return kept if enough else None
