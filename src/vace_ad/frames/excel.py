"""Excel workbooks: the sheet and the header row are found, or given."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vace_ad.caller import option
from vace_ad.errors import InputError, MissingExtraError, TableReadError

if TYPE_CHECKING:
    import polars as pl

_LOOK = 30  # rows in which the header is looked for


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
    chosen = max(found, key=lambda each: _filled(found[each]))
    notes = []
    if len(book.sheet_names) > 1 and sheet is None:
        notes.append(
            f"sheet {chosen!r} of {len(book.sheet_names)} was read; "
            f"{option('sheet', 'NAME')} reads another"
        )
    rows = found[chosen]
    if not rows:
        raise TableReadError(f"{name}: sheet {chosen!r} is empty; name another with --sheet")
    if header_row is not None and not 1 <= header_row < len(rows):
        raise InputError(
            f"{option('header_row', header_row)} came; sheet {chosen!r} has {len(rows):,} rows"
        )
    first = _header(rows) if header_row is None else header_row - 1
    if first:
        notes.append(f"{first} rows above the header of sheet {chosen!r} left out")
    return _frame(rows, first), notes


def _cells(book: Any, sheet: str) -> list[list[Any]]:
    """All cells as they are, row by row; typed columns would lose what stands above a header."""
    loaded = book.load_sheet(sheet, header_row=None, dtypes=None, schema_sample_rows=None)
    frame = loaded.to_polars()
    # A column with a word in it comes as words; times and numbers are told apart again below.
    return [list(row) for row in frame.iter_rows()]


def _filled(rows: list[list[Any]]) -> int:
    return sum(cell is not None for row in rows for cell in row)


def _header(rows: list[list[Any]]) -> int:
    """The first row in which most columns hold a word and below which most hold none."""
    width = max(sum(cell is not None for cell in row) for row in rows[:500])
    for i, row in enumerate(rows[:_LOOK]):
        words = sum(isinstance(cell, str) and not _is_number(cell) for cell in row)
        if words >= max(1, width - 1):
            return i
    return 0


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _frame(rows: list[list[Any]], first: int) -> pl.DataFrame:
    import polars as pl

    from vace_ad.frames.text import column_names

    width = len(rows[first])
    names = column_names(["" if cell is None else str(cell).strip() for cell in rows[first]], width)
    columns = {}
    for i, name in enumerate(names):
        cells = [row[i] for row in rows[first + 1 :]]
        kinds = {type(cell) for cell in cells if cell is not None}
        mixed = len(kinds) > 1 and not kinds <= {int, float, bool}
        texts = [None if cell is None else str(cell) for cell in cells]
        columns[name] = pl.Series(name, texts if mixed or kinds == {str} else cells, strict=False)
    frame = pl.DataFrame(columns)
    kept = [column.name for column in frame if column.null_count() < len(column)]
    return frame.select(kept).filter(~pl.all_horizontal(pl.all().is_null()))


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
