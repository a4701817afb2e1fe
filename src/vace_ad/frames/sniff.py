"""Detects the delimiter, decimal sign and header of a table: titles, groups, names and units."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vace_ad.errors import ConfigError, InputError, TableReadError
from vace_ad.frames.read_options import ReadOptions
from vace_ad.settings import option
from vace_ad.wording import listed

DELIMITERS = (",", ";", "\t", "|")
DECIMALS = (".", ",")

# Cells that stand for "no value"; the empty cell is understood without being listed.
MISSING = ("NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "nil", "-", "--", "?", "missing")

_NUMBER = {
    ".": re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"),
    ",": re.compile(r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?"),
}
# Thousands that are set apart: 38.151,00 or 38 151,00, and 38,151.00 or 38'151.00. polars takes
# these patterns too.
_SIGNS = " '\u2019\u00a0\u202f"
GROUPED = {
    ".": rf"^[+-]?\d{{1,3}}([,{_SIGNS}]\d{{3}})+(\.\d*)?$",
    ",": rf"^[+-]?\d{{1,3}}([.{_SIGNS}]\d{{3}})+(,\d*)?$",
}
GROUP_SIGNS = {".": f"[,{_SIGNS}]", ",": f"[.{_SIGNS}]"}
_GROUPED = {sign: re.compile(pattern) for sign, pattern in GROUPED.items()}
_ONE_GROUP = re.compile(r"[+-]?\d{1,3}[.,]\d{3}")  # 1,234 may as well have three decimals
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
_MONTH = r"[^\W\d_]{3,9}\.?"
_DATE = (
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})|"
    rf"\d{{1,2}}\.?[-/ ]{_MONTH}[-/ ](\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}},? \d{{4}})"
)
_TIME = re.compile(
    rf"(([A-Z][a-z]{{1,8}}, )?{_DATE}([T: ]+{_CLOCK})?|{_CLOCK})( [AaPp][Mm])?"
    r"\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)


class Head(NamedTuple):
    """The names and units of a table's columns, and where its values begin."""

    names: tuple[str, ...]  # "" where a column has none; empty without a header
    units: tuple[str, ...]  # of each column, "" where it has none; empty without such a row
    rows: int  # before the first row of values
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dialect:
    """How the cells of a text table are set apart and written, and what stands above them."""

    delimiter: str
    decimal: str
    head: Head
    width: int  # cells of a row of values


def sniff_dialect(lines: Sequence[str], how: ReadOptions) -> Dialect:
    """Find the delimiter, decimal sign and header of a table from its first lines.

    What is given is kept; the rest is chosen so that most cells read as numbers or times and
    all lines have the same number of cells.
    """
    delimiter, decimal = how.delimiter, how.decimal
    if decimal is not None and decimal not in DECIMALS:
        raise ConfigError(f"decimal is {decimal!r}; allowed are '.' and ','")
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise ConfigError(f"delimiter is {delimiter!r}; it must be one ASCII character")
    if delimiter is not None and delimiter == decimal:
        raise ConfigError(f"delimiter and decimal are both {delimiter!r}; they must differ")
    if how.header is False and how.header_row is not None:
        raise ConfigError(
            f"{option('header_row', how.header_row)} cannot be combined with a table without a "
            "header; give one of the two"
        )
    delimiters = DELIMITERS if delimiter is None else (delimiter,)
    decimals = DECIMALS if decimal is None else (decimal,)
    pairs = [(d, c) for d in delimiters for c in decimals if d != c]
    # max() keeps the first of equals, so the order of DELIMITERS and DECIMALS breaks ties.
    best, sign = max(pairs, key=lambda pair: _fit(lines, *pair))
    rows = split(lines, best)
    width = Counter(len(row) for row in rows if row).most_common(1)[0][0]
    start = 0 if how.header_row is not None else _start(rows, width)
    head = find_head(rows[start:], sign, how)
    if start:
        before = f"{start} line{'s' * (start > 1)} before the table left out"
        notes = (before, *head.notes)
        head = head._replace(rows=head.rows + start, notes=notes)
    return Dialect(best, sign, head, width)


def _start(rows: Sequence[Sequence[str]], width: int) -> int:
    """The first row of the table: the first with as many cells as most, or a header before it.

    A header may lack the delimiter that the other lines end with, or have one more; a row of groups
    may end early.
    """
    start = next(i for i, row in enumerate(rows) if len(row) == width)
    if width == 1:
        return next(i for i, row in enumerate(rows) if row)
    ends_open = all(row[-1] == "" for row in rows if len(row) == width)
    while start > 0 and (
        len(rows[start - 1]) > max(1, width // 2)
        or (ends_open and len(rows[start - 1]) == width - 1)
    ):
        start -= 1
    return start


def split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Cut lines into rows of stripped cells, quotes respected; a blank line has no cell."""
    if not any('"' in line for line in lines):  # quick, and without a limit on a cell's length
        rows = [line.split(delimiter) if line.strip() else [] for line in lines]
    else:
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error as error:
            raise TableReadError(
                f"the text cannot be cut into cells ({error}); a quote may never be closed: "
                f"close it, or name the {option('delimiter')}"
            ) from error
    return [[cell.strip() for cell in row] for row in rows]


def kind_of(cell: str, decimal: str) -> str:
    """Whether a cell is a "number", a "time", "missing", or else a "word"."""
    if is_missing(cell):
        return "missing"
    if is_number(cell, decimal) or _GROUPED[decimal].match(cell):
        return "number"
    return "time" if _TIME.fullmatch(cell) else "word"


def is_number(cell: str, decimal: str) -> bool:
    """Whether a cell reads as a number with this decimal sign, thousands not set apart."""
    return bool(_NUMBER[decimal].fullmatch(cell) or _NOT_FINITE.fullmatch(cell))


def is_missing(cell: str) -> bool:
    """Whether a cell stands for no value."""
    return cell == "" or cell in MISSING


def _fit(lines: Sequence[str], delimiter: str, decimal: str) -> tuple[bool, float]:
    """How well a pair explains the lines: does it cut them at all, and the share of good cells."""
    try:
        rows = [row for row in split(lines, delimiter) if row]
    except TableReadError:
        return False, 0.0
    if not rows:
        return False, 0.0
    width = Counter(map(len, rows)).most_common(1)[0][0]
    body = rows[1:] or rows
    good = sum(
        sum(_readable(cell, decimal) for cell in row) / width for row in body if len(row) == width
    )
    share = good / len(body)
    # One column is the last resort: "1,5" must not win as a single decimal-comma number
    # over two columns. A cut that explains nothing does not count as a cut.
    return width > 1 and share > 0, share


def _readable(cell: str, decimal: str) -> float:
    """1 for a cell that is no word, less for a number whose comma may be another's decimal sign."""
    if kind_of(cell, decimal) == "word":
        return 0.0
    return 0.5 if _ONE_GROUP.fullmatch(cell) and not is_number(cell, decimal) else 1.0


Cells = Sequence[str]  # of one row, stripped; "" where a cell is empty

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


def find_head(rows: Sequence[Cells], decimal: str, how: ReadOptions) -> Head:
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
    columns = _column_kinds(rows, decimal)
    if header_row is not None:
        names, below = rows[header_row - 1], rows[header_row]
        units = below if _are_units(below, names, columns, decimal) else ()
        return _head(names, units, header_row + bool(units), header_row - 1, [])
    first = _first_values(rows, columns, decimal)
    if first == 0:
        first = int(bool(how.header) or _is_header(rows, decimal))
        if first and len(rows) > 1 and _are_units(rows[1], rows[0], columns, decimal):
            return _head(rows[0], rows[1], 2, 0, [])
        return Head(tuple(rows[0]) if first else (), (), first)
    above = [i for i in range(first) if any(rows[i])]
    last = above[-1]
    units = ()
    if len(above) > 1 and _are_units(rows[last], rows[above[-2]], columns, decimal):
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


def _column_kinds(rows: Sequence[Cells], decimal: str) -> list[str]:
    """What most cells of each column are, "number", "time" or "word"."""
    sample = rows[-max(1, min(_SAMPLE, len(rows) - 1)) :]
    found = []
    for column in range(max(map(len, rows), default=0)):
        kinds = Counter(kind_of(row[column], decimal) for row in sample if column < len(row))
        del kinds["missing"]
        best = kinds.most_common(1)
        found.append(best[0][0] if best else "missing")
    return found


def _first_values(rows: Sequence[Cells], columns: Sequence[str], decimal: str) -> int:
    """The first row with a value of its column's kind; 0 where none is near the top."""
    for i, row in enumerate(rows[:_FIRST_ROWS]):
        for cell, wanted in zip(row, columns, strict=False):
            if wanted in ("number", "time") and kind_of(cell, decimal) == wanted:
                while i and not any(rows[i - 1]):  # rows without any cell are values, all missing
                    i -= 1
                return i if any(map(any, rows[:i])) else 0
    return 0


def _fullness(row: Cells, columns: Sequence[str]) -> tuple[int, int]:
    """How many columns of numbers have a cell in this row, and how many of its cells differ."""
    cells = [cell for cell, column in zip(row, columns, strict=False) if column == "number"]
    return sum(map(bool, cells)), len({cell for cell in row if cell})


def _is_header(rows: Sequence[Cells], decimal: str) -> bool:
    """Whether the first row holds a word above values, words alone, or counts 0, 1, 2 …"""
    if not rows:
        return False
    first, body = rows[0], rows[1:]
    kinds = [kind_of(cell, decimal) for cell in first]
    fraction = any(
        k == "number" and not cell.isdigit() for k, cell in zip(kinds, first, strict=True)
    )
    if "time" in kinds or fraction:
        return False
    if all(k == "word" for k in kinds) or any(
        k == "word"
        and any(kind_of(row[i], decimal) in ("number", "time") for row in body if i < len(row))
        for i, k in enumerate(kinds)
    ):
        return True
    counts = [cell for cell in first if cell]
    return len(counts) > 1 and any(
        counts == [str(i + start) for i in range(len(counts))] for start in (0, 1)
    )


def _are_units(row: Cells, names: Cells, columns: Sequence[str], decimal: str) -> bool:
    """Whether a row holds nothing but units where its columns hold numbers, each below a name."""
    units = [
        (cell, name)
        for cell, name, column in zip(row, names, columns, strict=False)
        if column == "number" and kind_of(cell, decimal) != "missing"
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
