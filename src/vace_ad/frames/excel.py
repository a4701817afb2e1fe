"""Excel workbooks: the sheet and the header row are found, or given."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vace_ad.caller import option
from vace_ad.errors import InputError, MissingExtraError, TableReadError
from vace_ad.frames.text import column_names, with_numbers

if TYPE_CHECKING:
    import polars as pl

_LOOK = 30  # rows in which the header is looked for
_SAMPLE = 1000  # rows that sheets are compared by


def read_excel(
    name: str, data: bytes | Path, *, sheet: str | None = None, header_row: int | None = None
) -> tuple[pl.DataFrame, list[str]]:
    """Read one sheet of a workbook: the named one, else the one that holds the most cells.

    `header_row` counts from 1, as spreadsheets do.
    """
    try:
        import fastexcel
    except ImportError as error:
        raise MissingExtraError("reading an Excel workbook", "fastexcel", "excel") from error
    # What it logs goes to those who listen, not to the terminal.
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())

    raw = io.BytesIO(data).getvalue() if isinstance(data, bytes) else data.read_bytes()
    try:
        book = fastexcel.read_excel(raw)
        sheets = [sheet] if sheet is not None else book.sheet_names
        if sheet is not None and sheet not in book.sheet_names:
            raise InputError(
                f"{name} has no sheet {sheet!r}; it has {', '.join(map(repr, book.sheet_names))}"
            )
        found = {each: _cells(book, each) for each in sheets}
    except fastexcel.FastExcelError as error:
        raise TableReadError(
            f"{name} is an Excel workbook that cannot be read ({_first(error)}); it may be "
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
    if header_row is not None and not 1 <= header_row < len(rows):
        raise InputError(
            f"{option('header_row', header_row)} came; sheet {chosen!r} has only {len(rows):,} rows"
        )
    first = _header(rows) if header_row is None else header_row - 1
    if first:
        notes.append(f"{first} rows above the header of sheet {chosen!r} left out")
    return with_numbers(_frame(book, chosen, rows, first), ".", notes), notes


def _cells(book: Any, sheet: str) -> list[list[str | None]]:
    """The first cells of a sheet as words, row by row."""
    loaded = book.load_sheet(sheet, header_row=None, n_rows=_SAMPLE, dtypes="string")
    return [list(row) for row in loaded.to_polars().iter_rows()]


def _filled(rows: list[list[str | None]]) -> int:
    return sum(cell is not None for row in rows for cell in row)


def _header(rows: list[list[str | None]]) -> int:
    """The first row in which most columns hold a word and below which most hold none."""
    width = max(sum(cell is not None for cell in row) for row in rows[:500])
    for i, row in enumerate(rows[:_LOOK]):
        words = sum(cell is not None and not _is_number(cell) for cell in row)
        if words >= max(1, width - 1):
            return i
    return 0


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _frame(book: Any, sheet: str, rows: list[list[str | None]], first: int) -> pl.DataFrame:
    """The cells below the header, in columns of one type; empty rows and columns left out."""
    import polars as pl

    loaded = book.load_sheet(sheet, header_row=None, skip_rows=first + 1, schema_sample_rows=None)
    frame: pl.DataFrame = loaded.to_polars()
    titles = [(cell or "").strip() for cell in rows[first]]
    frame.columns = column_names(titles, frame.width)
    kept = [column.name for column in frame if column.null_count() < len(column)]
    return frame.select(kept).filter(~pl.all_horizontal(pl.all().is_null()))


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
