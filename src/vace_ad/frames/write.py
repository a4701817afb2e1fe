"""Answers in the caller's kind of table, and on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from vace_ad.errors import ConfigError, InputError

if TYPE_CHECKING:
    import polars as pl


def frame_like(data: Any, columns: Mapping[str, Any]) -> Any:
    """A table of `columns` in the kind of `data`: pandas, polars or Arrow; polars for arrays."""
    import narwhals.stable.v2 as nw

    try:
        native = nw.from_native(data, eager_only=True, allow_series=True)
    except (TypeError, ValueError):
        return nw.from_dict(dict(columns), backend="polars").to_native()
    return nw.from_dict(dict(columns), backend=native.implementation).to_native()


def rows_like(data: Any, columns: Mapping[str, NDArray[Any]]) -> Any:
    """A table with a row for each row of `data`, in its kind, with its index or time kept."""
    import narwhals.stable.v2 as nw

    try:
        native = nw.from_native(data, eager_only=True, allow_series=True)
    except (TypeError, ValueError):
        return frame_like(data, columns)
    if isinstance(native, nw.Series):
        native = native.alias(native.name or "value").to_frame()
    wrong = {name: len(column) for name, column in columns.items() if len(column) != len(native)}
    if wrong:
        raise InputError(f"{wrong} rows for a table of {len(native)} rows; give one each")
    times = [n for n, kind in native.schema.items() if isinstance(kind, nw.Datetime | nw.Date)]
    backend = native.implementation
    added = [nw.new_series(n, c, backend=backend) for n, c in columns.items()]
    if backend.is_pandas():
        index = data.index
        added = [nw.from_native(s.to_native().set_axis(index), series_only=True) for s in added]
    return native.select(*times, *added).to_native()


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as its suffix says: .parquet or .csv."""
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".csv":
        frame.write_csv(path, datetime_format="%Y-%m-%dT%H:%M:%S%.f")
    else:
        raise ConfigError(f"{path.name!r}: a table is written as .parquet or .csv")
