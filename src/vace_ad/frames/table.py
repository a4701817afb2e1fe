"""One view of every kind of table, whole or in pieces: values, channel names, time.

Values keep their type; computations convert a few thousand rows at a time to float64, so a table is
never copied as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ChannelMismatchError, InputError, TableReadError
from vace_ad.frames.columns import clean_frame, with_states
from vace_ad.frames.time import order_rows
from vace_ad.wording import listed

if TYPE_CHECKING:
    import polars as pl

ROWS = 65_536  # that a Parquet file is read in


@dataclass(frozen=True)
class Table:
    """Rows of numbers in time order."""

    values: NDArray[Any]  # (n_rows, n_channels), real numbers of any type
    names: tuple[str, ...]
    time: NDArray[np.datetime64] | None = None  # (n_rows,), nanoseconds
    named: bool = True  # False where the names were made up here, as for a plain array
    zone: str | None = None  # of the times, where it is known; they are kept in UTC then

    def __len__(self) -> int:
        return len(self.values)

    def block(self, start: int, end: int) -> NDArray[np.float64]:
        """Rows [start, end) as float64, in one layout, so that sums run in one order."""
        return np.ascontiguousarray(self.values[start:end], np.float64)

    def __getitem__(self, rows: slice) -> Table:
        time = None if self.time is None else self.time[rows]
        return replace(self, values=self.values[rows], time=time)

    def ordered(self) -> Table:
        """The rows in order of time, those of the same time averaged."""
        if self.time is None:
            raise InputError("the table has no time, so it cannot be sorted; give it a time column")
        values, time, _ = order_rows(self.block(0, len(self)), self.time)
        return replace(self, values=values, time=time)

    def first(self, n: int) -> Table:
        """The same rows with the first n channels alone."""
        return replace(self, values=self.values[:, :n], names=self.names[:n])

    def select(self, channels: Sequence[int]) -> Table:
        """The same rows with the channels of these numbers."""
        names = tuple(self.names[i] for i in channels)
        return replace(self, values=self.values[:, channels], names=names)

    def aligned(self, names: Sequence[str]) -> Table:
        """The same rows with the channels called `names`, in that order."""
        if self.names == tuple(names):
            return self
        if not self.named:
            if len(self.names) != len(names):
                raise InputError(
                    f"the table has {len(self.names)} channels without names, the detector was "
                    f"fitted on {len(names)}: {listed(names, 8)}"
                )
            return replace(self, names=tuple(names))
        missing = [name for name in names if name not in self.names]
        extra = [name for name in self.names if name not in names]
        if missing or extra:
            raise ChannelMismatchError(missing, extra)
        return self.select([self.names.index(name) for name in names])


def as_table(data: Any, expected: tuple[str, ...] = ()) -> Table:
    """Read a NumPy array, a pandas, polars or Arrow table, or a list of rows.

    A datetime column, or a pandas datetime index, becomes the time; all other columns must be
    numbers or truth values. Missing values become NaN. Columns without names take those that are
    expected, where there are as many; columns that are not expected and could not be channels,
    such as text, are left out.
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, list | tuple):
        try:
            data = np.asarray(data)
        except ValueError as error:
            raise InputError(f"the rows of a list must have the same length: {error}") from error
    if isinstance(data, np.ndarray):
        values = _array_values(data)
        if values.shape[1] == len(expected):
            return Table(values, expected, named=False)
        return Table(values, tuple(f"channel_{i}" for i in range(values.shape[1])), named=False)
    try:
        frame = nw.from_native(data, eager_only=True, allow_series=True)
    except TypeError as error:
        raise InputError(
            f"got a {type(data).__name__}; a table is a NumPy array, or a pandas, polars or "
            "Arrow table"
        ) from error
    except ValueError as error:  # narwhals refuses tables whose names repeat
        raise InputError(f"the table's columns cannot be read: {error}") from error
    if isinstance(frame, nw.Series):
        frame = frame.alias(frame.name or "channel_0").to_frame()
    if expected:
        coded = with_states(frame.to_native(), (), expected)
        frame = nw.from_native(clean_frame(coded, expected)[0], eager_only=True)
    return _frame_table(frame, getattr(data, "index", None))


def as_polars(data: Any) -> pl.DataFrame:
    """A pandas, polars or Arrow table as a polars one; a pandas index of times becomes a column.

    Anything else raises TypeError.
    """
    index: Any = getattr(data, "index", None)
    if _is_datetime(index) and hasattr(data, "columns"):
        title = index.name if index.name not in (None, *data.columns) else "time"
        free = (t for t in (title, "timestamp", "\0index") if t not in data.columns)
        data = data.rename_axis(next(free)).reset_index()
    frame: pl.DataFrame = nw.from_native(data, eager_only=True).to_polars()
    return frame


def _is_datetime(index: Any) -> bool:
    """Whether this is an index of pandas that holds times."""
    return getattr(getattr(index, "dtype", None), "kind", "") == "M"


def _array_values(array: NDArray[Any]) -> NDArray[Any]:
    """A real-valued array as (n_rows, n_channels); one dimension is one channel."""
    if isinstance(array, np.ma.MaskedArray):  # masked is missing
        array = np.ma.filled(array.astype(np.float64), np.nan)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"got an array of shape {array.shape}; needed is (n_rows, n_channels)")
    if array.shape[1] == 0:
        raise InputError(f"got an array of shape {array.shape}; at least one channel is needed")
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"got an array of {array.dtype}; its values must be real numbers or booleans"
        )
    return array


def _frame_table(frame: nw.DataFrame[Any], index: Any) -> Table:
    schema = frame.schema
    times = [name for name, kind in schema.items() if isinstance(kind, nw.Datetime | nw.Date)]
    channels = [name for name in schema if name not in times]
    wrong = [
        name for name in channels if not (schema[name].is_numeric() or schema[name] == nw.Boolean)
    ]
    if wrong:
        kinds = listed([f"{name!r} ({schema[name]})" for name in wrong], 8)
        raise InputError(f"columns that are not numbers: {kinds}; convert or drop them")
    if len(times) > 1:
        raise InputError(f"several time columns: {', '.join(map(repr, times))}; keep one")
    if not channels:
        raise InputError("the table has no column of numbers")
    single = all(schema[name] == nw.Float32 for name in channels)
    values = np.empty((len(frame), len(channels)), np.float32 if single else np.float64)
    for i, name in enumerate(channels):
        values[:, i] = frame[name].cast(nw.Float32 if single else nw.Float64).to_numpy()
    time, zone = None, None
    if times:
        zone = getattr(schema[times[0]], "time_zone", None)
        time = _in_utc(frame[times[0]]).to_numpy()
    elif _is_datetime(index):
        zone = None if index.tz is None else str(index.tz)
        time = (index if zone is None else index.tz_convert(None)).to_numpy()
    time = None if time is None else time.astype("datetime64[ns]")
    return Table(values, tuple(str(name) for name in channels), time, zone=zone)


def _in_utc(column: nw.Series[Any]) -> nw.Series[Any]:
    """A datetime column without its zone, which NumPy cannot carry."""
    zone = getattr(column.dtype, "time_zone", None)
    return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zone else column


def as_chunks(data: Any) -> Iterator[Any] | None:
    """The pieces of an iterator or of a Parquet file; None for a table, which is one piece."""
    if isinstance(data, str | PathLike):
        return parquet_chunks(Path(data))
    return data if isinstance(data, Iterator) else None


def gathered(data: Any, expected: tuple[str, ...]) -> Table:
    """One table of those channels, of what may come in pieces."""
    chunks = as_chunks(data)
    if chunks is None:
        return as_table(data, expected).aligned(expected)
    tables = [as_table(chunk, expected).aligned(expected) for chunk in chunks]
    if not tables:
        raise TableReadError("the iterator is empty; give at least one table")
    values = np.concatenate([table.values for table in tables])
    times = [table.time for table in tables if table.time is not None]
    time = np.concatenate(times) if len(times) == len(tables) else None
    return replace(tables[0], values=values, time=time)


def parquet_chunks(path: Path) -> Iterator[Any]:
    """A Parquet file as polars tables of a limited number of rows."""
    with open_parquet(path) as (whole, n_rows):
        for start in range(0, n_rows, ROWS):
            yield whole.slice(start, ROWS).collect()


@contextmanager
def open_parquet(path: Path) -> Iterator[tuple[Any, int]]:
    """A Parquet file that is read when asked for, and its number of rows."""
    import polars as pl

    if path.suffix != ".parquet":
        raise TableReadError(f"{path} is not a .parquet file; read it into a table first")
    if not path.is_file():
        raise TableReadError(f"{path} does not exist; check the path")
    try:
        whole = pl.scan_parquet(path)
        yield whole, whole.select(pl.len()).collect().item()
    except pl.exceptions.PolarsError as error:
        raise TableReadError(f"{path} cannot be read as Parquet: {error}") from error


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
