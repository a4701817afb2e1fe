"""Excel workbooks: the sheet and the header row are found, or given.

A reader of sheets reserves every cell between the first and the last, so that one cell in the last
corner, or one that is repeated, takes more memory than the file has any right to: they are counted
before.
"""

from __future__ import annotations

import io
import logging
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from vace_ad.errors import InputError, TableReadError, needs
from vace_ad.frames.read_options import ReadOptions
from vace_ad.frames.sniff import Head, find_head
from vace_ad.frames.text import column_names, first_line, units_of, with_numbers
from vace_ad.settings import option

if TYPE_CHECKING:
    from vace_ad.frames.read import RawFile

_SAMPLE = 1000  # rows that sheets are compared by


def read_excel(file: RawFile, how: ReadOptions) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Read one sheet of a workbook, the named one, else the one that holds the most cells.

    Also notes, and the units of columns that have one.
    """
    name, sheet = file.name, how.sheet
    with needs("fastexcel", "excel", "reading an Excel workbook"):
        import fastexcel
    # What it logs goes to those who listen, not to the terminal.
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())

    raw = file.read()
    try:
        if raw.startswith(b"PK"):
            check_sheets(file, raw)
        book = fastexcel.read_excel(raw)
        sheets = [sheet] if sheet is not None else book.sheet_names
        if sheet is not None and sheet not in book.sheet_names:
            raise InputError(
                f"{name} has no sheet {sheet!r}; it has {', '.join(map(repr, book.sheet_names))}"
            )
        found = {each: _cells(book, each) for each in sheets}
    except InputError:
        raise
    except (fastexcel.FastExcelError, *UNREADABLE) as error:
        raise TableReadError(
            f"{name} is an Excel workbook that cannot be read ({first_line(error)}); it may be "
            "damaged or locked by a password: save it again, or as CSV"
        ) from error
    if not found:
        raise TableReadError(f"{name} is an Excel workbook without any sheet; save it again")
    chosen = max(found, key=lambda each: sum(bool(cell) for row in found[each] for cell in row))
    notes = []
    if len(book.sheet_names) > 1 and sheet is None:
        notes.append(
            f"sheet {chosen!r} of {len(book.sheet_names)} was read; "
            f"{option('sheet', 'NAME')} reads another"
        )
    rows = found[chosen]
    if not rows:
        raise TableReadError(
            f"{name}: sheet {chosen!r} is empty; name another with {option('sheet')}"
        )
    head = find_head(rows, ".", how)
    notes += head.notes
    frame, units = _frame(book, chosen, head)
    return with_numbers(frame, ".", notes), {"notes": tuple(notes), "units": units}


def _cells(book: Any, sheet: str) -> list[list[str]]:
    """The first cells of a sheet as words, row by row."""
    loaded = book.load_sheet(sheet, header_row=None, n_rows=_SAMPLE, dtypes="string")
    return [[(cell or "").strip() for cell in row] for row in loaded.to_polars().iter_rows()]


def _frame(book: Any, sheet: str, head: Head) -> tuple[pl.DataFrame, dict[str, str]]:
    """The cells below the head in columns of one type, without empty rows and columns; units."""
    loaded = book.load_sheet(sheet, header_row=None, skip_rows=head.rows, schema_sample_rows=None)
    frame: pl.DataFrame = loaded.to_polars()
    frame.columns = column_names(head.names, frame.width)
    units = units_of(frame.columns, head.units)
    kept = [column.name for column in frame if column.null_count() < len(column)]
    return frame.select(kept).filter(~pl.all_horizontal(pl.all().is_null())), units


# What a damaged, locked or foreign archive ends in.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
_BLOCK = 1 << 20
_TAIL = 4096  # bytes of a block that are looked at again with the next: longer than any tag here
_CELL = re.compile(rb"""\sr=["']([A-Z]{1,3})(\d{1,7})["']""")  # of .xlsx
_REPEATS = re.compile(  # of .ods: a cell with a value, or the beginning of a row
    rb"<table:(table-row|table-cell)\b([^>]*)>"
)
_COUNT = re.compile(rb"""number-(?:rows|columns)-repeated=["'](\d+)["']""")
_CELL_BYTES = 32  # that a reader of sheets takes for a cell, empty or not


def check_sheets(file: RawFile, data: bytes) -> None:
    """Refuse a workbook whose sheets would take more than the limit."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(part.file_size for part in archive.infolist()) > file.most:
            raise file.too_large()
        for part in archive.infolist():
            if part.filename.startswith("xl/worksheets/") and part.filename.endswith(".xml"):
                rows, columns = _last_cell(_blocks(archive, part))
            elif part.filename == "content.xml":
                rows, columns = _repeated(_blocks(archive, part))
            else:
                continue
            file.check_cells(rows, columns, cell=_CELL_BYTES)


def _blocks(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    tail = b""
    with archive.open(part) as file:
        while block := file.read(_BLOCK):
            yield tail + block
            tail = block[-_TAIL:]


def _last_cell(blocks: Iterator[bytes]) -> tuple[int, int]:
    """The last row and column that a sheet names."""
    rows, letters = 0, set[bytes]()
    for block in blocks:
        found = _CELL.findall(block)
        letters.update(column for column, _ in found)
        rows = max(rows, max((int(row) for _, row in found), default=0))
    return rows, max(map(_column, letters), default=0)


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _repeated(blocks: Iterator[bytes]) -> tuple[int, int]:
    """Rows and columns of an OpenDocument sheet, repeated cells with a value counted."""
    rows = columns = 0
    for block in blocks:
        repeat = width = 1
        for kind, attributes in _REPEATS.findall(block):
            count = _COUNT.search(attributes)
            times = int(count[1]) if count else 1
            if kind == b"table-row":
                repeat, width = times, 0
            elif b"value-type" in attributes:
                width += times
                rows, columns = max(rows, repeat), max(columns, width)
    return rows, columns
