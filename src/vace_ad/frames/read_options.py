"""How to read a table and which rows train: each option declared once, for all who take it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vace_ad.errors import ConfigError
from vace_ad.settings import option, setting

Names = str | Sequence[str] | None  # a list, or one string with commas
_TRAINING = "Which rows are normal (give one way; default: the first 30 %)"
PLANT = "The plant"
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}  # bytes


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table: the keywords of `vace_ad.read`, the options of the commands."""

    PANEL: ClassVar = "How the table is read"  # of the help, where an option names no other

    time_column: str | None = setting(None, "Column that holds the time.")
    time_zone: str | None = setting(
        None, "Time zone of timestamps without one, for example Europe/Berlin."
    )
    sort: bool = setting(False, "Sort the rows by time, and average rows of the same time.")
    resample: str | None = setting(
        None, "Average the rows of each time span, for example 1min, to make the step regular."
    )
    columns: Names = setting(None, "Use only these columns, for example temp,flow.", "A,B,…")
    drop: Names = setting(None, "Use all but these columns.", "A,B,…")
    delimiter: str | None = setting(None, "Delimiter of cells, for example ';'; \\t for tab.")
    decimal: str | None = setting(None, "Decimal sign, . or ,")
    encoding: str | None = setting(None, "Encoding of the text, for example cp1252.")
    header: bool | None = setting(
        None, "Whether the first line contains the column names.", flag="--header/--no-header"
    )
    long: Names = setting(
        None, "Columns of sensor names and values, for a table in long format.", "SENSOR,VALUE"
    )
    by: Names = setting(
        None,
        "Columns that identify a machine; each machine gets its own model. 'file' for one "
        "machine per file.",
        "A,B,…",
    )
    sheet: str | None = setting(None, "Sheet of a workbook.")
    header_row: int | None = setting(
        None, "Row of a workbook or text file that holds the column names, counted from 1."
    )
    query: str | None = setting(None, "SQL query that reads the table from a database.")
    where: str | None = setting(
        None,
        "Train only on rows that satisfy a condition, for example \"Status == 'run' and "
        'speed > 100"; all rows are scored.',
        "CONDITION",
        panel=_TRAINING,
    )
    labels: str | None = setting(
        None,
        "Past faults, as CSV of start,end and optionally code, note and equipment: left out of "
        "training and used for evaluation.",
        "FILE",
        panel=PLANT,
    )
    max_size: str | int = setting("4GB", "Maximum memory of the unpacked table, for example 8GB.")
    states: Sequence[str] = ()  # columns of words that become channels, by the detector's settings
    options: bool = False  # whether messages name options of the command line

    def refuse(self, kind: str, names: Sequence[str]) -> None:
        """Refuse options that a format has no use for."""
        for name in names:
            value = getattr(self, name)
            if value is not None:
                raise ConfigError(f"{option(name, value)}: a {kind} file has none; leave it out")


@dataclass(frozen=True)
class TrainingOptions:
    """Which rows are normal: one way of the first five, or the first 30 %."""

    PANEL: ClassVar = _TRAINING

    train_share: float | None = setting(None, "Share of leading rows used for training.")
    train_rows: int | None = setting(None, "Number of leading rows used for training.")
    train_until: str | None = setting(
        None, "Train on the rows before this time, for example 2026-03-01."
    )
    train_file: str | None = setting(None, "Train on this table instead of leading rows.")
    train_range: list[str] | None = setting(
        None,
        "Train on this time range, for example 2026-01-01..2026-02-01; may be given several "
        "times. All rows are then searched for events.",
        "FROM..TO",
    )
    train_skip: list[str] | None = setting(
        None,
        "Leave this time range out of training, for example 2026-01-05..2026-01-07; may be "
        "given several times.",
        "FROM..TO",
    )

    def check(self) -> None:
        """Refuse more than one way."""
        at_most_one(self, "train_share", "train_rows", "train_until", "train_range", "train_file")


def at_most_one(options: object, *names: str) -> None:
    """Refuse two of these options."""
    given = [option(name) for name in names if getattr(options, name) not in (None, [], False)]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} cannot be combined; give one of them")


def names_of(listing: Names) -> list[str] | None:
    """The names of a list, or of one string with commas."""
    if listing is None:
        return None
    return [n.strip() for n in listing.split(",")] if isinstance(listing, str) else list(listing)


def parse_size(text: str | int) -> int:
    """Bytes of a size such as 500MB or 8GB."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].upper() not in _UNITS or float(match[1]) == 0:
        raise ConfigError(
            f"{text!r} is not a size; write a number and a unit, such as 500MB or 8GB"
        )
    return round(float(match[1]) * _UNITS[match[2].upper()])


def size_words(size: float) -> str:
    """A number of bytes for display."""
    for unit in ("TB", "GB", "MB", "kB"):
        bytes_of = _UNITS[unit.upper()]
        if size >= bytes_of:
            return f"{size / bytes_of:.3g} {unit}"
    return f"{size:.0f} bytes"
