"""Training data: tables or Parquet files, split into complete runs, thinned where very long."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.errors import InputError, TooShortError, VaceWarning
from vace_ad.frames.calendar import Calendar
from vace_ad.frames.columns import clean_frame, column_of, with_states
from vace_ad.frames.idle import IdleRule, idle_rows, word_columns
from vace_ad.frames.sampling import StepRule, StepTracker, with_missing
from vace_ad.frames.segments import CUT, Rebuild, Segments, missing_cells
from vace_ad.frames.table import Table, as_table, open_parquet
from vace_ad.frames.time import irregular_note
from vace_ad.settings import option, spelt


class TrainingPart(NamedTuple):
    """A complete stretch of training rows, and where it lies in the tables one after another."""

    start: int
    rows: NDArray[np.float64]  # (n_rows, n_channels)


Learn = Callable[[Sequence[NDArray[np.float64]]], Rebuild]
LARGEST_UNIT = 1e40  # up to which scores are the same in any unit, to rounding
PIECES = 16  # that a training part beyond max_fit_rows is thinned to


def training_tables(
    data: Any, config: VACEConfig, sort: bool, expected: tuple[str, ...] = ()
) -> tuple[list[Table], int]:
    """One table or Parquet path, or a list of them; and the number of rows that they have.

    Of a file with more rows than a fit uses, only the pieces that it uses are read. Columns that
    cannot be channels are left out with a warning, as on the command line. `sort` puts the
    rows of a table in order of time. `expected` are the channels, where they are known; otherwise
    those of the calendar are added.
    """
    tables: list[Table] = []
    pauses: list[NDArray[np.int64]] = []
    n_rows = 0
    parts = data if are_several(data) else [data]
    columns = word_columns(config)
    states = expected if expected or not columns else _states(parts, columns)
    for part in parts:
        pieces, count = [part], None  # a table counts once it is read
        if isinstance(part, str | PathLike):
            pieces, count = _parquet_pieces(Path(part), config)
        for piece in pieces:
            piece = with_states(piece, columns, states)
            if not tables and not expected:
                piece, notes = clean_frame(piece)
                for note in notes:
                    warnings.warn(note, VaceWarning, stacklevel=4)
            table = as_table(piece, tables[0].names if tables else expected)
            tables.append(table.ordered() if sort else table)
            time = tables[-1].time
            if time is not None and not isinstance(piece, Table):  # readers have warned already
                pauses.append(np.diff(time).astype(np.int64))
        n_rows += len(table) if count is None else count
    if expected:
        return tables, n_rows
    calendar, said = Calendar.fit(config.calendar, tables)
    every = np.concatenate([np.empty(0, np.int64), *pauses])
    if len(every) and np.median(every) > 0:
        said += [f"{note} in vace_ad.read" for note in irregular_note(every)]
    for note in said:
        warnings.warn(spelt(note), VaceWarning, stacklevel=4)
    return [calendar.added(table, config.max_missing) for table in tables], n_rows


def _states(parts: Sequence[Any], columns: Sequence[str]) -> tuple[str, ...]:
    """The channels that columns of words become, from the words of all tables."""
    names: dict[str, None] = {}
    for part in parts:
        found = with_states(part, columns)
        if found is not part:
            names |= dict.fromkeys(n for n in map(str, found.columns) if column_of(n) in columns)
    return tuple(sorted(names))


def are_several(data: Any) -> bool:
    """Whether this is a list of tables or paths, and not one table written as a list of rows."""
    if not isinstance(data, list | tuple) or len(data) == 0:
        return False
    numbers = np.isscalar(data[0]) and not isinstance(data[0], str)
    return not numbers and not all(isinstance(row, list | tuple) for row in data)


class Channels(Protocol):
    """What has learned from channels."""

    @property
    def channels_(self) -> Sequence[str]:
        """Their names."""


_P = ParamSpec("_P")
_E = TypeVar("_E", bound=Channels)
_R = TypeVar("_R")


def of_each(
    method: Callable[Concatenate[_E, Any, _P], _R],
) -> Callable[Concatenate[_E, Any, _P], _R]:
    """Let a method take a list of tables, as `fit` does, and return a list of results."""

    @wraps(method)
    def answer(self: _E, data: Any, *given: _P.args, **named: _P.kwargs) -> _R:
        if not are_several(data) or _are_rows(data, len(self.channels_)):
            return method(self, data, *given, **named)
        return cast(_R, [method(self, one, *given, **named) for one in data])

    return cast(Callable[Concatenate[_E, Any, _P], _R], answer)


def _are_rows(data: Any, n_channels: int) -> bool:
    """Whether a list holds the rows of one table, each an array, and not tables."""
    return n_channels > 1 and all(getattr(one, "ndim", 2) == 1 for one in data)


def _parquet_pieces(path: Path, config: VACEConfig) -> tuple[list[Any], int]:
    with open_parquet(path) as (whole, n_rows):
        cuts = [slice(0, n_rows)]
        if n_rows > config.max_fit_rows:
            size = max(config.least_rows, config.max_fit_rows // PIECES)
            cuts = _evenly(n_rows, PIECES, size)
        return [whole.slice(cut.start, cut.stop - cut.start).collect() for cut in cuts], n_rows


def training_parts(
    tables: Sequence[Table],
    names: Sequence[str],
    config: VACEConfig,
    learn: Learn,
    rule: StepRule | None = None,
    idle: IdleRule | None = None,
) -> list[TrainingPart]:
    """The stretches of all training tables that hold a patch and its neighbour.

    `rule` says what cuts rows, by default what their own times say; `idle` which are left out.
    Where channels are missing for long, `learn` makes of roughly filled rows the function that
    rebuilds them, as it does in scoring.
    """
    _refuse_magnitudes(tables, names)
    dead = np.all([missing_cells(table.values).all(axis=0) for table in tables], axis=0)
    if dead.any() and sum(map(len, tables)):
        listing = ", ".join(
            repr(name) for name, is_dead in zip(names, dead, strict=True) if is_dead
        )
        raise InputError(f"channels without one finite value: {listing}; drop them")
    needed = config.least_rows
    rule = rule or StepRule.of([table.time for table in tables], config.max_gap)
    parts = _stretches(tables, config, None, rule, idle)
    used, present = sum(len(part.rows) for part in parts), sum(map(len, tables))
    if used < present:  # missing cells that no short gap explains
        rebuild = learn([_roughly_filled(table.values) for table in tables])
        parts = _stretches(tables, config, rebuild, rule, idle)
    long_enough = [part for part in parts if len(part.rows) >= needed]
    if not long_enough:
        _refuse_idle(tables, config, idle)
        _refuse_sparse(tables, config)
        longest = max(map(len, tables))
        gaps = " without a gap" if longest >= needed else ""
        raise TooShortError(
            f"got {longest} training rows; {needed} in a row{gaps} are needed (patch_length "
            f"{config.length} + velocity offset {config.offset} + 1); give more rows or a "
            "smaller patch_length"
        )
    if all((part.rows == part.rows[0]).all() for part in long_enough):
        warnings.warn(
            "every channel is constant in training: there is nothing to learn",
            VaceWarning,
            stacklevel=3,
        )
    return _thinned(long_enough, config.max_fit_rows, needed)


def _refuse_magnitudes(tables: Sequence[Table], names: Sequence[str]) -> None:
    """Refuse channels whose unit makes most values too large to be squared and summed."""
    wide = [table.values for table in tables if np.can_cast(np.float64, table.values.dtype)]
    if not wide:  # smaller types cannot hold them
        return
    large = np.sum([(np.abs(values) > LARGEST_UNIT).sum(axis=0) for values in wide], axis=0)
    known = np.sum([np.isfinite(values).sum(axis=0) for values in wide], axis=0)
    bad = np.flatnonzero(2 * large > known)
    if len(bad):
        raise InputError(
            f"channel {names[bad[0]]!r} has values beyond {LARGEST_UNIT:.0e}, which cannot be "
            "computed with exactly; give it in a larger unit, so that its values are smaller"
        )


def _refuse_sparse(tables: Sequence[Table], config: VACEConfig) -> None:
    """Refuse tables whose rows hold few of their channels, as of pods that come and go."""
    there = [(~missing_cells(table.values)).sum(axis=1) for table in tables if len(table)]
    median = float(np.median(np.concatenate(there))) if there else 0.0
    width = tables[0].values.shape[1]
    if width - median > config.max_missing * width:
        raise InputError(
            f"half of the rows have a value in {median:.0f} or fewer of {width} channels; a row "
            f"may miss {config.max_missing:.0%} of them at most: sum up or average channels of the "
            f"same kind, such as pods of one service, bring rows of different times together with "
            f"{option('resample', '1min')}, or leave out columns that are seldom filled"
        )


def _refuse_idle(tables: Sequence[Table], config: VACEConfig, idle: IdleRule | None) -> None:
    """Refuse tables whose rows are off, or under maintenance, nearly all of the time."""
    if idle is None or not idle.given:
        return
    n = sum(map(len, tables))
    left = sum(
        int((~idle_rows(idle, t.block(0, len(t)), t.time, t.zone).any).sum()) for t in tables
    )
    if left < n:
        raise TooShortError(
            f"{n - left:,} of {n:,} training rows are off or under maintenance, and the others "
            f"have no stretch of {config.least_rows} rows, which a fit needs; check "
            f"{option('off', config.off)}, give more rows or a smaller patch_length"
        )


def _stretches(
    tables: Sequence[Table],
    config: VACEConfig,
    rebuild: Rebuild | None,
    rule: StepRule,
    idle: IdleRule | None,
) -> list[TrainingPart]:
    """Rows of pieces that follow each other, joined, with the place of their first row."""
    parts, first = [], 0
    for table in tables:
        steps = StepTracker(rule).add(table.time, len(table))
        values = table.block(0, len(table))
        if idle is not None and idle.given:
            steps = steps.without(idle_rows(idle, values, table.time, table.zone).any)
        values, steps, real = with_missing(values, steps)
        places = np.arange(len(values)) if real is None else np.cumsum(real) - real
        segments = Segments(values.shape[1], config.max_gap, config.max_missing, rebuild)
        at, together = 0, list[NDArray[np.float64]]()
        for piece in [*segments.add(values, steps.cuts(), steps.off), *segments.finish(), CUT]:
            if piece.rows is not None:
                together.append(piece.rows)
            elif together:
                rows = np.concatenate(together)
                parts.append(TrainingPart(first + int(places[at - len(rows)]), rows))
                together = []
            at += piece.n
        first += len(table)
    return parts


def _roughly_filled(values: NDArray[Any]) -> NDArray[np.float64]:
    """The values with the channel's median where a cell is missing."""
    filled = np.where(missing_cells(values), np.nan, values).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a channel missing all through one table
        middle = np.nan_to_num(np.nanmedian(filled, axis=0))
    return np.where(np.isnan(filled), middle, filled)


def _thinned(parts: Sequence[TrainingPart], most: int, least: int) -> list[TrainingPart]:
    """Evenly spaced pieces of long parts, about `most` rows in all, none below `least`."""
    total = sum(len(part.rows) for part in parts)
    if total <= most:
        return list(parts)
    size = max(least, most // PIECES)
    counts = [max(1, round(PIECES * len(part.rows) / total)) for part in parts]
    return [
        TrainingPart(part.start + cut.start, part.rows[cut])
        for part, count in zip(parts, counts, strict=True)
        for cut in _evenly(len(part.rows), count, size)
    ]


def _evenly(n_rows: int, count: int, size: int) -> list[slice]:
    """So many evenly spaced pieces of `size` rows, or the whole where they would hold it all."""
    if count * size >= n_rows:
        return [slice(0, n_rows)]
    starts = np.linspace(0, n_rows - size, count).astype(np.intp)
    return [slice(start, start + size) for start in starts.tolist()]
