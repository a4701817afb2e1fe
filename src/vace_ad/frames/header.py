"""The header of a table: titles, groups of columns, names, units."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from vace_ad.errors import InputError
from vace_ad.frames.read_options import ReadOptions
from vace_ad.settings import option
from vace_ad.wording import listed

Cells = Sequence[str]  # of one row, stripped; "" where a cell is empty
Kind = Callable[[str], str]  # of a cell: "number", "time", "missing" or "word"

_FIRST_ROWS = 30  # rows in which the values must begin
_SAMPLE = 100  # rows that tell what a column holds

_BASES = (
    "m|g|s|A|K|mol|cd|Hz|N|Pa|J|W|V|F|C|Ω|Ohm|S|T|H|lm|lx|bar|bara|barg|l|L|t|h|min|d|a|Wh|VA|var|"
    "VAr|eV|cal|B|bit|Bd|psi|rpm|U|Nm|dB|dBm|dBA|degC|degF|deg|rad|pH|ppm|ppb|NTU|mWS|mmHg|in|ft|"
    "lb|gal|gpm|cfm|mph|kn|sec|Sek|Std|Stk|pcs|count|counts|EUR|USD"
)
_ONE = (
    rf"(?:[pnµμumcdhkMGT]?(?:{_BASES})|[°º][CFK]?|%\s?(?:r[FH]|RH)?|‰|€|\$|1)"
    r"(?:\^?[-−]?\d|[⁻²³¹]+)?"
)
_UNIT = re.compile(rf"{_ONE}(?:\s?[/*·⋅.]\s?{_ONE}| {_ONE})*|[\[(][^\])]{{0,12}}[\])]")


class Head(NamedTuple):
    """The names and units of a table's columns, and where its values begin."""

    names: tuple[str, ...]  # "" where a column has none; empty without a header
    units: tuple[str, ...]  # of each column, "" where it has none; empty without such a row
    rows: int  # before the first row of values
    notes: tuple[str, ...] = ()


def find_head(rows: Sequence[Cells], kind: Kind, how: ReadOptions) -> Head:
    """Tell names and units from values in the first rows of a table, blank ones included.

    The values begin in the first row with a cell of its column's kind, a number or a time. Of the
    rows above them the last may hold units, the fullest holds the names, and one above that, with
    a name for several columns, tells equal names apart.
    """
    header_row = how.header_row  # from 1
    if header_row is not None and not 1 <= header_row < len(rows):
        raise InputError(
            f"{option('header_row', header_row)}: the table has only {len(rows):,} rows"
        )
    if how.header is False:
        return Head((), (), 0)
    columns = _column_kinds(rows, kind)
    if header_row is not None:
        names, below = rows[header_row - 1], rows[header_row]
        units = below if _are_units(below, names, columns, kind) else ()
        return _head(names, units, header_row + bool(units), header_row - 1, [])
    first = _first_values(rows, columns, kind)
    if first == 0:
        first = int(bool(how.header) or _is_header(rows, kind))
        if first and len(rows) > 1 and _are_units(rows[1], rows[0], columns, kind):
            return _head(rows[0], rows[1], 2, 0, [])
        return Head(tuple(rows[0]) if first else (), (), first)
    above = [i for i in range(first) if any(rows[i])]
    last = above[-1]
    units = ()
    if len(above) > 1 and _are_units(rows[last], rows[above[-2]], columns, kind):
        units = rows[above.pop()]
    names_at = max(above, key=lambda i: _fullness(rows[i], columns))
    names, notes = rows[names_at], list[str]()
    left_out = names_at
    if names_at in above[1:]:
        names, used = _with_groups(names, rows[above[above.index(names_at) - 1]])
        if used:
            left_out -= 1
            notes.append(f"names are made of two rows, such as {used!r}")
    between = [i for i in above if i > names_at]
    if between:
        notes.append(
            f"{len(between)} row{'s' * (len(between) > 1)} between names and values left out, "
            f"beginning with {next(cell for cell in rows[between[0]] if cell)!r}"
        )
    return _head(names, units, last + 1, left_out, notes)


def _head(names: Cells, units: Cells, rows: int, left_out: int, notes: list[str]) -> Head:
    if left_out:
        notes.insert(0, f"{left_out} lines before the table left out")
    if units:
        units = ["" if unit in ("-", "--") else unit.strip("[]()") for unit in units]
        some = list(dict.fromkeys(unit for unit in units if unit))
        notes.append(f"the row below the names holds units: {listed(some)}")
    return Head(tuple(names), tuple(units), rows, tuple(notes))


def _column_kinds(rows: Sequence[Cells], kind: Kind) -> list[str]:
    """What most cells of each column are, "number", "time" or "word"."""
    sample = rows[-max(1, min(_SAMPLE, len(rows) - 1)) :]
    found = []
    for column in range(max(map(len, rows), default=0)):
        kinds = Counter(kind(row[column]) for row in sample if column < len(row))
        del kinds["missing"]
        best = kinds.most_common(1)
        found.append(best[0][0] if best else "missing")
    return found


def _first_values(rows: Sequence[Cells], columns: Sequence[str], kind: Kind) -> int:
    """The first row with a value of its column's kind; 0 where none is near the top."""
    for i, row in enumerate(rows[:_FIRST_ROWS]):
        for cell, wanted in zip(row, columns, strict=False):
            if wanted in ("number", "time") and kind(cell) == wanted:
                while i and not any(rows[i - 1]):  # rows without any cell are values, all missing
                    i -= 1
                return i if any(map(any, rows[:i])) else 0
    return 0


def _fullness(row: Cells, columns: Sequence[str]) -> tuple[int, int]:
    """How many columns of numbers have a cell in this row, and how many of its cells differ."""
    cells = [cell for cell, column in zip(row, columns, strict=False) if column == "number"]
    return sum(map(bool, cells)), len({cell for cell in row if cell})


def _is_header(rows: Sequence[Cells], kind: Kind) -> bool:
    """Whether the first row holds a word above values, words alone, or counts 0, 1, 2 …"""
    if not rows:
        return False
    first, body = rows[0], rows[1:]
    kinds = [kind(cell) for cell in first]
    fraction = any(
        k == "number" and not cell.isdigit() for k, cell in zip(kinds, first, strict=True)
    )
    if "time" in kinds or fraction:
        return False
    if all(k == "word" for k in kinds) or any(
        k == "word" and any(kind(row[i]) in ("number", "time") for row in body if i < len(row))
        for i, k in enumerate(kinds)
    ):
        return True
    counts = [cell for cell in first if cell]
    return len(counts) > 1 and any(
        counts == [str(i + start) for i in range(len(counts))] for start in (0, 1)
    )


def _are_units(row: Cells, names: Cells, columns: Sequence[str], kind: Kind) -> bool:
    """Whether a row holds nothing but units where its columns hold numbers, each below a name."""
    units = [
        (cell, name)
        for cell, name, column in zip(row, names, columns, strict=False)
        if column == "number" and kind(cell) != "missing"
    ]
    return bool(units) and all(name and _UNIT.fullmatch(cell) for cell, name in units)


def _with_groups(names: Cells, groups: Cells) -> tuple[list[str], str]:
    """Names with what the row above says where they are empty or repeat, and one so made."""
    repeats = len({name for name in names if name}) < sum(map(bool, names))
    found, used, group = [], "", ""
    for i, name in enumerate(names):
        above = groups[i] if i < len(groups) else ""
        group = above if name and above else group
        if not name and above:
            found.append(above)
            group = ""
        elif name and group and repeats:
            found.append(f"{group} {name}")
            used = used or found[-1]
        else:
            found.append(name)
    return found, used or next((f for f, n in zip(found, names, strict=True) if f and not n), "")
