"""How a text table is written: its encoding, delimiter, decimal sign and header, recognised."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vace_ad.caller import option
from vace_ad.errors import ConfigError, TableReadError

DELIMITERS = (",", ";", "\t", "|")
DECIMALS = (".", ",")

# Cells that stand for "no value"; the empty cell is understood without being listed.
MISSING = ("NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "nil", "-", "--", "?", "missing")

_NUMBER = {
    ".": re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"),
    ",": re.compile(r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?"),
}
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
_DATE = r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})"
_TIME = re.compile(rf"({_DATE}([T ]+{_CLOCK})?|{_CLOCK})\s*(Z|UTC|[+-]\d{{2}}:?\d{{2}})?")

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
    """How the cells of a text table are set apart and written."""

    delimiter: str
    decimal: str
    header: bool
    skip: int = 0  # lines before the table, such as an export's title
    trailing: bool = False  # lines below the header end with a delimiter that it lacks


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


def sniff_dialect(
    lines: Sequence[str],
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
) -> Dialect:
    """Find the delimiter, decimal sign and header of a table from its first lines.

    What is given is kept; the rest is chosen so that most cells read as numbers or times and
    all lines have the same number of cells.
    """
    if decimal is not None and decimal not in DECIMALS:
        raise ConfigError(f"decimal is {decimal!r}; allowed are '.' and ','")
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise ConfigError(f"delimiter is {delimiter!r}; it must be one ASCII character")
    if delimiter is not None and delimiter == decimal:
        raise ConfigError(f"delimiter and decimal are both {delimiter!r}; they must differ")
    delimiters = DELIMITERS if delimiter is None else (delimiter,)
    decimals = DECIMALS if decimal is None else (decimal,)
    pairs = [(d, c) for d in delimiters for c in decimals if d != c]
    # max() keeps the first of equals, so the order of DELIMITERS and DECIMALS breaks ties.
    best = max(pairs, key=lambda pair: _fit(lines, *pair))
    skip, trailing = _preamble(lines, best[0])
    rows = split(lines[skip:], best[0])
    found = _has_header(rows, best[1]) if header is None else header
    return Dialect(best[0], best[1], found, skip, trailing)


def split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Cut lines into stripped cells, quotes respected; blank lines are left out."""
    filled = [line for line in lines if line.strip()]
    if not any('"' in line for line in filled):  # quick, and without a limit on a cell's length
        return [[cell.strip() for cell in line.split(delimiter)] for line in filled]
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(filled, delimiter=delimiter)]
    except csv.Error as error:
        raise TableReadError(
            f"the text cannot be cut into cells ({error}); a quote may never be closed: mend it, "
            f"or name the {option('delimiter')}"
        ) from error


def _preamble(lines: Sequence[str], delimiter: str) -> tuple[int, bool]:
    """How many lines come before the table, and whether its header lacks a last delimiter.

    The table begins where a line has as many cells as most lines have.
    """
    rows = [split([line], delimiter)[0] if line.strip() else [] for line in lines]
    usual = Counter(len(row) for row in rows if row).most_common(1)
    width = usual[0][0] if usual else 1
    if width == 1:
        return 0, False
    begin = next(i for i, row in enumerate(rows) if len(row) == width)
    ends_open = all(row[-1] == "" for row in rows if len(row) == width)
    if ends_open and begin > 0 and len(rows[begin - 1]) == width - 1:
        return begin - 1, True
    return begin, False


def is_number(cell: str, decimal: str) -> bool:
    """Whether a cell reads as a number with this decimal sign."""
    return bool(_NUMBER[decimal].fullmatch(cell) or _NOT_FINITE.fullmatch(cell))


def is_missing(cell: str) -> bool:
    """Whether a cell stands for no value."""
    return cell == "" or cell in MISSING


def _fit(lines: Sequence[str], delimiter: str, decimal: str) -> tuple[bool, float]:
    """How well a pair explains the lines: does it cut them at all, and the share of good cells."""
    try:
        rows = split(lines, delimiter)
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


def _readable(cell: str, decimal: str) -> bool:
    return is_missing(cell) or _is_value(cell, decimal)


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """The first line names the columns when it holds a word above values, or counts 0, 1, 2 …"""
    if not rows:
        return False
    first, body = rows[0], rows[1:]
    if any(_TIME.fullmatch(cell) or _has_fraction(cell, decimal) for cell in first):
        return False
    words = [not is_missing(cell) and not is_number(cell, decimal) for cell in first]
    if all(words) or any(
        word and any(_is_value(row[i], decimal) for row in body if i < len(row))
        for i, word in enumerate(words)
    ):
        return True
    numbers = [cell for cell in first if cell]
    return len(numbers) > 1 and numbers in (
        [str(i) for i in range(len(numbers))],
        [str(i + 1) for i in range(len(numbers))],
    )


def _is_value(cell: str, decimal: str) -> bool:
    return is_number(cell, decimal) or bool(_TIME.fullmatch(cell))


def _has_fraction(cell: str, decimal: str) -> bool:
    return decimal in cell and is_number(cell, decimal)
