"""Tables on the command line: the options that say how to read one, and reading it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vace_ad.errors import ChannelMismatchError, InputError

if TYPE_CHECKING:
    from vace_ad.frames.read import ReadReport
    from vace_ad.frames.table import Table
    from vace_ad.frames.time import TimeReport

_READING = "How the table is read"

TablePath = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV (also .gz or .zst), Parquet or Arrow file; - for standard input. Delimiter, "
        "decimal sign, encoding, header and time column are found out.",
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(help="The column that holds the time.", rich_help_panel=_READING),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        help="Where the clock hung, if the stamps do not say, for example Europe/Berlin.",
        rich_help_panel=_READING,
    ),
]
Sort = Annotated[
    bool, typer.Option("--sort", help="Put the rows in order of time.", rich_help_panel=_READING)
]
Resample = Annotated[
    str | None,
    typer.Option(
        help="Average the rows of each span of time, for example 1min: evens out an irregular "
        "step.",
        rich_help_panel=_READING,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Only these columns, for example temp,flow.",
        metavar="A,B,…",
        rich_help_panel=_READING,
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(help="All but these columns.", metavar="A,B,…", rich_help_panel=_READING),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What stands between cells, for example ';'; \\t for tab.", rich_help_panel=_READING
    ),
]
Decimal = Annotated[
    str | None, typer.Option(help="The decimal sign, . or ,", rich_help_panel=_READING)
]
Encoding = Annotated[
    str | None,
    typer.Option(help="The text's encoding, for example cp1252.", rich_help_panel=_READING),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line names the columns.",
        rich_help_panel=_READING,
    ),
]


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
