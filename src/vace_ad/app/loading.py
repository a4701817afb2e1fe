"""Read a table as a detector takes it, and say what was found out on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vace_ad.errors import ChannelMismatchError, InputError

if TYPE_CHECKING:
    from vace_ad.frames.read import ReadReport
    from vace_ad.frames.table import Table
    from vace_ad.frames.time import TimeReport


@dataclass(frozen=True)
class Reading:
    """How to read a table, as the options said."""

    time_column: str | None = None
    time_zone: str | None = None
    sort: bool = False
    resample: str | None = None
    columns: str | None = None
    drop: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None


@dataclass(frozen=True)
class Loaded:
    """A table as a detector takes it, and all that was found out on the way."""

    table: Table
    clock: TimeReport
    source: ReadReport
    notes: list[str] = field(default_factory=list)


def load_table(path: str | Path, how: Reading, channels: Sequence[str] | None = None) -> Loaded:
    """Read a table; with `channels`, those columns and no others."""
    from vace_ad.frames.columns import channels_of
    from vace_ad.frames.read import read_table
    from vace_ad.frames.table import Table
    from vace_ad.frames.time import split_time

    frame, source = read_table(
        path,
        delimiter="\t" if how.delimiter == "\\t" else how.delimiter,
        decimal=how.decimal,
        encoding=how.encoding,
        header=how.header,
    )
    frame, time, clock = split_time(frame, how.time_column, zone=how.time_zone, sort=how.sort)
    notes = [*source.notes, *clock.notes]
    only = _names(how.columns)
    if channels is not None:
        missing = [name for name in channels if name not in frame.columns]
        if missing:
            raise ChannelMismatchError(missing, [])
        extra = [name for name in frame.columns if name not in channels]
        notes += [f"columns that the model does not know are left out: {', '.join(extra)}"] * bool(
            extra
        )
        only = list(channels)
    found = channels_of(frame, only=only, drop=_names(how.drop) or ())
    notes += [note.words() for note in found.notes]
    table = Table(found.values, found.names, time)
    if how.resample is not None:
        table, clock = _resampled(table, clock, how.resample)
        notes = [note for note in notes if "--resample" not in note]
        notes.append(f"rows averaged over {how.resample}: {len(table):,} rows")
    return Loaded(table, clock, source, notes)


def _names(listing: str | None) -> list[str] | None:
    return None if listing is None else [name.strip() for name in listing.split(",")]


def _resampled(table: Table, clock: TimeReport, every: str) -> tuple[Table, TimeReport]:
    from vace_ad.frames.resample import resample
    from vace_ad.frames.stamps import parse_duration
    from vace_ad.frames.table import Table
    from vace_ad.frames.time import check_time

    if table.time is None:
        raise InputError("--resample needs a time column, and none was found; name it")
    values, time = resample(table.values, table.time, parse_duration(every))
    return Table(values, table.names, time), check_time(time, clock.column, clock.zone)
