"""Which columns become channels, notes on the others, and the component each belongs to.

A column of words may become several channels, one of 0 and 1 for each value: `column=value`.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError, TableReadError
from vace_ad.settings import option
from vace_ad.wording import listed

if TYPE_CHECKING:
    import polars as pl


_FEW = 12  # different words from which a column looks like one of states
_MOST_WORDS = 50  # different words that a column of states has at most
_Examined = tuple["ColumnNote | None", "NDArray[np.float64] | None"]

_LABEL = re.compile(r"(is_?)?(label|anomaly|anomalies|attack|outlier|fault)s?", re.IGNORECASE)


def no_column(name: str, columns: Iterable[str], where: str = "") -> InputError:
    """The error for an unknown column, with the closest name; `where` is a prefix."""
    every = list(columns)
    close = get_close_matches(name, every, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the table has {listed(every, 12)}"
    return InputError(f"{where}no column is called {name!r}; {hint}")


@dataclass(frozen=True)
class ColumnNote:
    """A note for the user on one column."""

    name: str
    kind: str  # "text", "empty", "counter", "label", "constant", "identical", "not chosen"
    done: str  # what was done about it, in words
    kept: bool
    condition: str | None = None  # one that chooses some of the rows by it

    def words(self) -> str:
        """The note in one line, for people."""
        return f"column {self.name!r} is {self.kind}: {self.done}"


def notes_in_words(notes: Sequence[ColumnNote]) -> list[str]:
    """One line for each kind of note, however many columns it concerns."""
    groups: dict[tuple[str, str], list[ColumnNote]] = {}
    for note in notes:
        kind = "identical to another" if note.kind.startswith("identical") else note.kind
        groups.setdefault((kind, note.done), []).append(note)
    lines = []
    for (kind, done), group in groups.items():
        if len(group) == 1:
            lines.append(group[0].words())
            continue
        shown = listed([repr(note.name) for note in group])
        lines.append(f"{len(group)} columns are {kind}: {done} ({shown})")
    return lines


@dataclass(frozen=True)
class Channels:
    """The numbers of a table."""

    values: NDArray[np.float64]  # (n_rows, n_channels), NaN where missing
    names: tuple[str, ...]
    notes: tuple[ColumnNote, ...]


def channels_of(
    frame: pl.DataFrame, *, only: Sequence[str] | None = None, drop: Sequence[str] = ()
) -> Channels:
    """Take the columns of numbers and truth values; return notes on the others.

    Text, empty columns, row counters and labels are left out, unless named in `only`. Constant
    and identical columns are kept: a sensor at rest that starts to move, or two copies that
    part, are what a detector is for.
    """
    for name in (*(only or ()), *drop):
        if name not in frame.columns:
            raise no_column(name, frame.columns)
    notes: list[ColumnNote] = []
    columns: dict[str, NDArray[np.float64]] = {}
    for name in frame.columns:
        if name in drop or (only is not None and name not in only):
            continue
        series = nw.from_native(frame[name], series_only=True)
        note, column = _examine(series, name, chosen=only is not None)
        if note is not None:
            notes.append(note)
        if column is not None:
            columns[name] = column
    if only is not None and any(not note.kept for note in notes):
        note = next(note for note in notes if not note.kept)
        raise InputError(f"column {note.name!r} is {note.kind} and cannot be a channel; drop it")
    if not columns:
        raise TableReadError(
            f"no column holds numbers; check {option('delimiter')} and {option('decimal')} "
            f"(columns read: {', '.join(map(repr, frame.columns[:6]))})"
        )
    seen: dict[str, str] = {}
    found = [_copy_note(seen, name, values) for name, values in columns.items()]
    notes += [note for note in found if note is not None]
    values = np.column_stack(list(columns.values()))
    return Channels(values, tuple(columns), tuple(notes))


def clean_frame(data: Any, expected: Sequence[str] = ()) -> tuple[Any, list[str]]:
    """A pandas, polars or Arrow table without the columns that cannot be channels, and notes.

    What is done about each column is what the command line does. Of several columns of times
    the first is kept. Columns that are `expected` stay as they are, and nothing is said of them.
    Anything else than a table, such as an array, comes back as it is.
    """
    try:
        frame = nw.from_native(data, eager_only=True)
    except (TypeError, ValueError):
        return data, []  # the reader reports what is wrong
    kept: list[str] = []
    notes: list[ColumnNote] = []
    seen: dict[str, str] = {}
    timed = False
    for name, kind in frame.schema.items():
        if name in expected or (isinstance(kind, nw.Datetime | nw.Date) and not timed):
            timed = timed or name not in expected
            kept.append(name)
            continue
        note, column = _examine(frame[name], str(name), chosen=False)
        if note is None and column is not None:
            note = _copy_note(seen, str(name), column)
        if note is not None:
            notes.append(note)
        if column is not None:
            kept.append(name)
    told = notes_in_words(notes)
    return (data if len(kept) == frame.shape[1] else frame.select(kept).to_native()), told


def _examine(column: nw.Series[Any], name: str, *, chosen: bool) -> _Examined:
    """A note where the column is unusual, and its values where it is kept."""

    def left_out(kind: str) -> _Examined:
        return ColumnNote(name, kind, "left out", kept=False), None

    kind = column.dtype
    if column.null_count() == len(column):
        return left_out("empty")
    if not (kind.is_numeric() or kind == nw.Boolean):
        return left_out("a time") if kind.is_temporal() else (_text(column, name), None)
    values = column.cast(nw.Float64).to_numpy()
    known = values[np.isfinite(values)]
    if not len(known):
        return left_out("empty")
    if not chosen and _is_counter(values):
        return left_out("a row counter")
    if not chosen and _LABEL.fullmatch(name) and np.isin(known, (0.0, 1.0)).all():
        return left_out("a label")
    if known.min() == known.max():
        done = "kept, so that a move is noticed"
        return ColumnNote(name, "constant", done, kept=True), values
    return None, values


def _text(column: nw.Series[Any], name: str) -> ColumnNote:
    """What can be done with a column of few different words, such as the state of a machine."""
    words = sorted(map(str, column.drop_nulls().unique().to_list()))
    if not 2 <= len(words) <= _FEW or len(column) < 10 * len(words):
        return ColumnNote(name, "text", "left out", kept=False)
    shown = ", ".join(map(repr, words[:3])) + (", …" if len(words) > 3 else "")
    done = f"left out; a column of 0 and 1 for each of its values ({shown}) would be a channel"
    return ColumnNote(name, "text", done, kept=False, condition=f"{name} == '{words[0]}'")


def _is_counter(values: NDArray[np.float64]) -> bool:
    """Whether a column rises in every row, nearly always by the same step, as a row number does."""
    if len(values) < 3:
        return False
    steps = np.diff(values)
    median = float(np.median(steps))
    same = np.abs(steps - median) <= 1e-9 * np.abs(values[1:])
    return bool((steps > 0).all() and same.mean() >= 0.99)


def _copy_note(seen: dict[str, str], name: str, values: NDArray[np.float64]) -> ColumnNote | None:
    """A note where an earlier column is identical; None for constant columns.

    `seen` keeps the name of each column by a digest of its values.
    """
    if np.ptp(values[np.isfinite(values)]) == 0:
        return None  # has a note of its own
    digest = hashlib.sha1(np.ascontiguousarray(values).tobytes()).hexdigest()
    first = seen.setdefault(digest, name)
    if first == name:
        return None
    done = "kept, so that it is noticed when they part"
    return ColumnNote(name, f"identical to {first!r}", done, kept=True)


def with_states(data: Any, columns: Sequence[str], expected: Sequence[str] = ()) -> Any:
    """A table whose named columns of words became channels; anything else comes back as it is.

    `expected` are the channels of a model: its columns of words are found by them, and values that
    it does not know become 0 in all of them.
    """
    wanted = list(dict.fromkeys([*columns, *(column_of(name) for name in expected)]))
    try:
        frame = nw.from_native(data, eager_only=True)
    except (TypeError, ValueError):
        return data
    schema = frame.schema
    words = [
        name
        for name in wanted
        if name in schema
        and name not in expected
        and schema[name] in (nw.String, nw.Categorical, nw.Enum)
    ]
    if not words:
        return data
    for name in words:
        column = frame[name].cast(nw.String).str.strip_chars()
        known = [one for one in expected if column_of(one) == name]
        values = [one.removeprefix(f"{name}=") for one in known]
        values = values or sorted(column.drop_nulls().unique().to_list())
        if len(values) > _MOST_WORDS:
            raise InputError(
                f"column {name!r} holds {len(values):,} different words; a column of states has "
                f"{_MOST_WORDS} at most: leave it out, or group them"
            )
        missing = column.is_null()
        new = [
            (column == value).cast(nw.Float64).zip_with(~missing, missing.cast(nw.Float64) * np.nan)
            .alias(f"{name}={value}") for value in values
        ]  # fmt: skip
        frame = frame.drop(name).with_columns(new)
    return frame.to_native()


def column_of(channel: str) -> str:
    """The column of words that a channel belongs to; empty for other channels."""
    column, equals, _ = channel.partition("=")
    return column if equals else ""


def words_of(rows: NDArray[np.float64], channels: Sequence[str], column: str) -> NDArray[Any]:
    """The words (n,) that rows (n, n_channels) hold in a column; None for none that is known."""
    places = [i for i, name in enumerate(channels) if column_of(name) == column]
    values = np.array([None, *(channels[i].removeprefix(f"{column}=") for i in places)], object)
    there = rows[:, places] > 0.5  # NaN compares false
    return np.asarray(values[np.where(there.any(axis=1), there.argmax(axis=1) + 1, 0)])


HEADER = ("sensor", "component")


def read_components(path: Path) -> tuple[str, ...]:
    """Lines `sensor,component`, with or without that header, as `component/sensor` each."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TableReadError(f"{path} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for number, cells in enumerate(csv.reader(lines), start=1):
        row = [cell.strip() for cell in cells]
        if not any(row) or (number == 1 and tuple(map(str.lower, row)) == HEADER):
            continue
        if len(row) != 2 or not all(row):
            raise TableReadError(
                f"{path}, line {number}: {','.join(cells)!r} came; write a sensor and its "
                "component: flow,pump"
            )
        sensor, component = row
        if found.setdefault(sensor, component) != component:
            raise TableReadError(
                f"{path}, line {number}: {sensor!r} is of {found[sensor]!r} above and of "
                f"{component!r} here; keep one of them"
            )
    if not found:
        raise TableReadError(f"{path} names no sensor; write one a line: sensor,component")
    return tuple(f"{component}/{sensor}" for sensor, component in found.items())
