"""Excel workbooks: the sheet and the header row are found, or given."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vace_ad.errors import InputError, MissingExtraError, TableReadError
from vace_ad.frames.header import Head, find_head
from vace_ad.frames.sheet_size import UNREADABLE, check_sheets
from vace_ad.frames.sniff import kind_of
from vace_ad.frames.text import column_names, first_line, units_of, with_numbers
from vace_ad.settings import option

if TYPE_CHECKING:
    import polars as pl

_SAMPLE = 1000  # rows that sheets are compared by


def read_excel(
    name: str,
    data: bytes | Path,
    most: int,
    *,
    sheet: str | None = None,
    header_row: int | None = None,
) -> tuple[pl.DataFrame, list[str], dict[str, str]]:
    """Read one sheet of a workbook: the named one, else the one that holds the most cells.

    Also notes, and the units of columns that have one. `header_row` counts from 1, as
    spreadsheets do.
    """
    try:
        import fastexcel
    except ImportError as error:
        raise MissingExtraError("reading an Excel workbook", "fastexcel", "excel") from error
    # What it logs goes to those who listen, not to the terminal.
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())

    raw = data if isinstance(data, bytes) else data.read_bytes()
    try:
        if raw.startswith(b"PK"):
            check_sheets(name, raw, most)
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
    chosen = max(found, key=lambda each: _filled(found[each]))
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
    head = find_head(rows, lambda cell: kind_of(cell, "."), header_row=header_row)
    notes += head.notes
    frame, units = _frame(book, chosen, head)
    return with_numbers(frame, ".", notes), notes, units


def _cells(book: Any, sheet: str) -> list[list[str]]:
    """The first cells of a sheet as words, row by row."""
    loaded = book.load_sheet(sheet, header_row=None, n_rows=_SAMPLE, dtypes="string")
    return [[(cell or "").strip() for cell in row] for row in loaded.to_polars().iter_rows()]


def _filled(rows: list[list[str]]) -> int:
    return sum(bool(cell) for row in rows for cell in row)


def _frame(book: Any, sheet: str, head: Head) -> tuple[pl.DataFrame, dict[str, str]]:
    """The cells below the head in columns of one type, without empty rows and columns; units."""
    import polars as pl

    loaded = book.load_sheet(sheet, header_row=None, skip_rows=head.rows, schema_sample_rows=None)
    frame: pl.DataFrame = loaded.to_polars()
    frame.columns = column_names(head.names, frame.width)
    units = units_of(frame.columns, head.units)
    kept = [column.name for column in frame if column.null_count() < len(column)]
    return frame.select(kept).filter(~pl.all_horizontal(pl.all().is_null())), units
