"""Load tables for a detector, with notes on what was recognised."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from vace_ad.errors import ChannelMismatchError, ConfigError, InputError, TableReadError
from vace_ad.frames.columns import channels_of, column_of, notes_in_words, with_states
from vace_ad.frames.layout import pivot, refuse_other_shapes
from vace_ad.frames.read import ReadReport, read_table
from vace_ad.frames.read_options import ReadOptions, names_of
from vace_ad.frames.sources import (
    BY_FILE,
    FILE,
    TableSource,
    by_file,
    find_sources,
    order_files,
    read_sources,
    with_keys,
)
from vace_ad.frames.spans import Span, of_equipment, read_spans
from vace_ad.frames.table import Table, as_polars
from vace_ad.frames.time import (
    TimeReport,
    check_order,
    check_time,
    no_time,
    order_rows,
    resample,
    split_time,
)
from vace_ad.frames.timestamps import parse_duration, zoned
from vace_ad.frames.where import rows_where
from vace_ad.settings import option, spelt

_WHERE = "\0where"  # the condition as a column, so that it is sorted and averaged too


@dataclass(frozen=True)
class Loaded:
    """A table for a detector, and what was recognised while reading it."""

    table: Table
    clock: TimeReport
    source: ReadReport
    notes: list[str] = field(default_factory=list)
    normal: NDArray[np.bool_] | None = None  # rows that may be learned from; None for all
    faults: Sequence[Span] = ()  # past ones, as labels say

    def only(self, channels: Sequence[str]) -> Loaded:
        """The same with these channels alone, such as those that a detector could learn."""
        names = self.table.names
        if set(channels) >= set(names):
            return self
        kept = [i for i, name in enumerate(names) if name in channels]
        return replace(self, table=self.table.select(kept))

    def frame(self) -> pl.DataFrame:
        """The table with its time in the zone that it came in."""
        columns = [pl.Series(n, self.table.values[:, i]) for i, n in enumerate(self.table.names)]
        if self.table.time is not None:
            names = set(self.table.names)
            title = next(t for t in ("time", "timestamp", "time_") if t not in names)
            columns.insert(0, zoned(title, self.table.time, self.clock.zone))
        return pl.DataFrame(columns)


def load_table(
    places: str | Path | Iterable[str | Path],
    how: ReadOptions,
    channels: Sequence[str] | None = None,
) -> Loaded:
    """Read one series, from one file or several; with `channels`, those columns and no others."""
    sources = find_sources(places)
    frame, source = read_frame(sources, how)
    return load_frame(frame, source, how, channels, [one.place for one in sources])


def load_any(data: Any, how: ReadOptions, channels: Sequence[str] | None = None) -> Loaded:
    """Read one series from a place, or from a table that is in memory already."""
    try:
        frame = as_polars(data)
    except TypeError:
        return load_table(data, how, channels)
    return load_frame(frame, ReadReport.of_table("table", frame), how, channels)


def load_tables(places: str | Path | Iterable[str | Path], how: ReadOptions) -> list[Loaded]:
    """Read each file as a table of its own, all with the channels of the first."""
    sources = find_sources(places)
    keys = list(dict.fromkeys(name for one in sources for name, _ in one.keys))
    if keys and how.by is None and len({one.keys for one in sources}) > 1:
        raise InputError(
            f"the paths name {len(sources):,} series by {', '.join(map(repr, keys))}; a model for "
            f"each is learned with {option('by', ','.join(keys))}"
        )
    first = load_table(sources[0].place, how)
    return [first, *(load_table(one.place, how, first.table.names) for one in sources[1:])]


def read_frame(sources: Sequence[TableSource], how: ReadOptions) -> tuple[pl.DataFrame, ReadReport]:
    """The rows of all sources as they are written."""
    with without_panic_words() if how.options else nullcontext():
        return read_sources(sources, lambda place: read_table(place, how))


@contextmanager
def without_panic_words() -> Iterator[None]:
    """Keep the backtrace that polars prints on a panic off the terminal."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # standard error is closed
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def load_frame(
    frame: pl.DataFrame,
    source: ReadReport,
    how: ReadOptions,
    channels: Sequence[str] | None = None,
    places: Sequence[str] = (),
) -> Loaded:
    """Rows as they are written to a table: time, shape, channels, order."""
    frame = _with_where(frame, how)
    frame, time, clock = split_time(frame, how.time_column, zone=how.time_zone)
    notes = [*source.notes, *clock.notes]
    frame, time, notes = _one_series(frame, time, how, notes, places)
    where = frame[_WHERE].to_numpy() if how.where is not None else None
    frame = frame.drop(_WHERE, strict=False)
    only = names_of(how.columns)
    named = frame.columns
    frame = with_states(frame, how.states, channels or ())
    if only is not None:
        coded = [name for name in frame.columns if column_of(name) in only and name not in named]
        words = {column_of(name) for name in coded}
        only = [name for name in only if name not in words] + coded
    if channels is not None:
        only, more = _known_channels(frame, channels)
        notes += more
    drop = [name for name in names_of(how.drop) or () if channels is None or name in frame.columns]
    found = channels_of(frame, only=only, drop=drop)
    notes += notes_in_words(found.notes)
    states = [note.condition for note in found.notes if note.condition is not None]
    if states and how.options and how.where is None:
        notes.append(f'--where "{states[0]}" would train on some rows only')
    values, names = found.values, found.names
    if where is not None:  # one more column, so that it is sorted and averaged as the others are
        values, names = np.column_stack([values, where]), (*names, _WHERE)
    if time is not None and how.sort:
        values, time, more = order_rows(values, time)
        notes += more
    table = Table(values, names, time, zone=clock.zone)
    if how.resample is not None:
        table = _resampled(table, how.resample, clock.zone)
        notes.append(f"rows averaged over {how.resample}: {len(table):,} rows")
    if table.time is not None:
        clock = check_time(table.time, clock.column, clock.zone)
        notes += clock.notes
    table, normal = _without_where(table, how)
    notes = [spelt(note, options=how.options) for note in notes]
    faults = [] if how.labels is None else read_spans(Path(how.labels))
    faults = faults if how.by is None else of_equipment(faults, source.source)
    return Loaded(table, clock, source, notes, normal, faults)


def _with_where(frame: pl.DataFrame, how: ReadOptions) -> pl.DataFrame:
    """A column of 1 for the rows that the condition allows to be learned from, else 0."""
    if how.where is None:
        return frame
    if how.long is not None:
        raise ConfigError(
            f"{option('where')} and {option('long')} cannot be combined: a row of a long "
            "table is one reading, so a condition on rows has no meaning there"
        )
    return frame.with_columns(rows_where(frame, how.where).cast(pl.Float64).alias(_WHERE))


def _without_where(table: Table, how: ReadOptions) -> tuple[Table, NDArray[np.bool_] | None]:
    """The table without that column, and which rows it allows, all of a span that was averaged."""
    if how.where is None:
        return table, None
    allowed = table.values[:, -1]
    last = np.maximum.accumulate(np.where(np.isnan(allowed), 0, np.arange(len(allowed))))
    normal = allowed[last] == 1.0  # spans without a row go with the one before
    if not normal.any():
        raise InputError(
            f"no row satisfies {option('where', how.where)}; check its column and value"
        )
    return table.first(len(table.names) - 1), normal


def _one_series(
    frame: pl.DataFrame,
    time: NDArray[np.datetime64] | None,
    how: ReadOptions,
    notes: list[str],
    places: Sequence[str],
) -> tuple[pl.DataFrame, NDArray[np.datetime64] | None, list[str]]:
    """Pivot a long table; refuse a table that holds several series; join files in order."""
    if how.by is not None:
        frame = frame.drop(names_of(how.by) or [], strict=False)  # the caller chose one machine
    if how.long is not None:
        files = frame.drop(FILE, strict=False)
        frame, time, more = pivot(files, time, how.long)
        return frame, time, [*notes, *more]
    left = [name for name in names_of(how.drop) or () if name in frame.columns]
    refuse_other_shapes(frame.drop(left).drop(FILE, _WHERE, strict=False), time)
    if FILE in frame.columns:
        if time is None:
            return frame.drop(FILE), time, notes
        frame, time = order_files(frame, time, places, sort=how.sort)
    return frame, time, notes


def _known_channels(frame: pl.DataFrame, channels: Sequence[str]) -> tuple[list[str], list[str]]:
    missing = [name for name in channels if name not in frame.columns]
    if missing:
        raise ChannelMismatchError(missing, [])
    extra = [name for name in frame.columns if name not in channels and name != _WHERE]
    notes = [f"columns that are not in the model are left out: {', '.join(extra)}"]
    return list(channels), notes if extra else []


def _resampled(table: Table, every: str, zone: str | None) -> Table:
    if table.time is None:
        raise no_time(option("resample"))
    check_order(table.time, zone)
    values, time = resample(table.values, table.time, parse_duration(every))
    return replace(table, values=values, time=time)


def read_keyed(
    places: str | Path | Iterable[str | Path], how: ReadOptions
) -> tuple[pl.DataFrame, list[str]]:
    """The rows of all machines with their key columns first, and notes."""
    by = names_of(how.by) or []
    sources = find_sources(places)
    if by == [BY_FILE]:
        sources = by_file(sources)
    frame, report = read_frame(sources, how)
    frame, notes = with_keys(frame.drop(FILE, strict=False), by)
    return frame, [*report.notes, *notes]


TIME = "timestamp"  # the column of times of other services' tables


def timed_frame(files: Sequence[Path], prefix: str = "") -> pl.DataFrame:
    """Files of the same columns as one table: `timestamp`, then the columns with a prefix."""
    frame, _ = read_frame(find_sources(files), ReadOptions())
    frame, time, clock = split_time(frame.drop(FILE, strict=False))
    if time is None:
        raise TableReadError(
            f"{files[0]}: no column of times was found; its first column is to hold timestamps"
        )
    frame = frame.rename(lambda name: prefix + name)
    frame = frame.insert_column(0, zoned(TIME, time, clock.zone))
    return frame.unique(TIME, keep="first", maintain_order=True)


def joined(
    parts: Sequence[pl.DataFrame], place: Path, how: Literal["full", "inner"] = "full"
) -> pl.DataFrame:
    """All columns in one table, with each time that any of them has (full), or all (inner)."""
    frame = parts[0]
    for part in parts[1:]:
        if part[TIME].dtype != frame[TIME].dtype:
            raise TableReadError(
                f"{place}: timestamps of {part.columns[1]!r} are in {part[TIME].dtype}, those of "
                f"{frame.columns[1]!r} in {frame[TIME].dtype}; write all in one time zone"
            )
        twice = set(part.columns[1:]) & set(frame.columns)
        if twice:
            raise TableReadError(
                f"{place}: {sorted(twice)[0]!r} is in two files; rename one, or put each component "
                "in a folder of its own"
            )
        frame = frame.join(part, on=TIME, how=how, coalesce=True)
    return frame.sort(TIME)
