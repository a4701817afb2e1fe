"""Detects the encoding, delimiter, decimal sign and header of a text table."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from vace_ad.errors import ConfigError, TableReadError
from vace_ad.frames.header import Head, find_head
from vace_ad.frames.read_options import ReadOptions
from vace_ad.settings import option

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

# Byte order marks, the longer first: UTF-16's is the beginning of UTF-32's.
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


@dataclass(frozen=True)
class Dialect:
    """How the cells of a text table are set apart and written, and what stands above them."""

    delimiter: str
    decimal: str
    head: Head
    width: int  # cells of a row of values


def sniff_encoding(sample: bytes, *, complete: bool) -> str:
    """Name the encoding of a text from its first bytes.

    A byte order mark decides; else UTF-8 where it decodes (a character cut by the end of an
    incomplete sample is forgiven); else Windows-1252, which western spreadsheets write.
    """
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if b"\x00" in sample:
        raise TableReadError(
            "the file holds binary data, not text; give CSV, Parquet or Arrow, "
            f"or name the text's encoding, for example {option('encoding', 'utf-16-le')}"
        )
    for name in ("utf-8", "cp1252"):
        try:
            sample.decode(name)
        except UnicodeDecodeError as error:
            cut = not complete and name == "utf-8" and error.start > len(sample) - 4
            if not cut:
                continue
        return name
    raise TableReadError(
        "the text is in neither UTF-8 nor Windows-1252; "
        f"name its encoding, for example {option('encoding', 'shift_jis')}"
    )


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
    head = find_head(rows[start:], partial(kind_of, decimal=sign), how)
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
