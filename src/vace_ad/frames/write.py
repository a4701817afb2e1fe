"""Results as a table of the caller's kind, and as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from vace_ad.atomic import whole_file
from vace_ad.errors import ConfigError, InputError, needs
from vace_ad.frames.table import Table

if TYPE_CHECKING:
    import polars as pl

_ISO = "%Y-%m-%dT%H:%M:%S%.f"
_SHEET_ROWS = 1_048_576
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def frame_like(data: Any, columns: Mapping[str, Any]) -> Any:
    """A table of `columns` in the kind of `data`: pandas, polars or Arrow; polars for arrays.

    Times come in the time zone of `data`, so that they can be looked up there.
    """
    try:
        native = nw.from_native(data, eager_only=True, allow_series=True)
    except (TypeError, ValueError):
        return nw.from_dict(dict(columns), backend="polars").to_native()
    frame = nw.from_dict(dict(columns), backend=native.implementation)
    zone = zone_of(data)
    if zone is not None:
        times = [n for n, kind in frame.schema.items() if isinstance(kind, nw.Datetime)]
        frame = frame.with_columns(
            nw.col(name).dt.replace_time_zone("UTC").dt.convert_time_zone(zone) for name in times
        )
    return frame.to_native()


def zone_of(data: Any) -> str | None:
    """The time zone of a table's time: of its first column of times, else of a pandas index."""
    if isinstance(data, Table):
        return data.zone
    try:
        native = nw.from_native(data, eager_only=True)
    except (TypeError, ValueError):
        native = None
    for kind in native.schema.values() if native is not None else ():
        if isinstance(kind, nw.Datetime):
            return kind.time_zone
    zone = getattr(getattr(data, "index", None), "tz", None)
    return None if zone is None else str(zone)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as its suffix says, .parquet, .csv or .xlsx: whole, or not at all."""
    if path.suffix not in (".parquet", ".csv", ".xlsx"):
        raise ConfigError(f"{path.name!r}: a table is written as .parquet, .csv or .xlsx")
    with whole_file(path) as draft:
        if path.suffix == ".parquet":
            frame.write_parquet(draft)
        elif path.suffix == ".xlsx":
            _write_sheet(frame, draft)
        else:
            _for_csv(frame).write_csv(draft, datetime_format=_ISO)


def _write_sheet(frame: pl.DataFrame, path: Path) -> None:
    """One sheet with names in bold; times as dates in their zone, text never as formulas."""
    import polars.selectors as cs

    with needs("openpyxl", "excel", "writing an Excel workbook"):
        import openpyxl
    zoned = cs.datetime(time_zone="*")
    local = frame.with_columns(zoned.dt.replace_time_zone(None))  # a cell has no zone
    if frame.height >= _SHEET_ROWS:
        raise InputError(
            f"got {frame.height:,} rows; a sheet has {_SHEET_ROWS:,}, its header included: write "
            ".parquet or .csv"
        )
    book, bold = openpyxl.Workbook(), openpyxl.styles.Font(bold=True)
    sheet = book.active
    sheet.freeze_panes = "A2"
    for i, row in enumerate([frame.columns, *local.iter_rows()], 1):
        for j, value in enumerate(row, 1):
            cell = sheet.cell(i, j, value)
            if isinstance(value, str):
                cell.data_type = "s"  # words that begin like a formula stay words
            if i == 1:
                cell.font = bold
    with path.open("wb") as file:
        book.save(file)


def as_csv(frame: pl.DataFrame) -> str:
    """A table as CSV: times in ISO 8601 with their offset where the zone is known."""
    return _for_csv(frame).write_csv(datetime_format=_ISO)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a CSV file would run a cell of this text."""
    return text.startswith(_FORMULA)


def _for_csv(frame: pl.DataFrame) -> pl.DataFrame:
    """Times and words as CSV takes them; words that begin like a formula get a quote in front."""
    import polars.selectors as cs

    return frame.with_columns(
        cs.string().str.replace(r"^([=+\-@\t\r])", "'$1"),
        cs.datetime(time_zone="*").dt.strftime(f"{_ISO}%:z"),
    )
