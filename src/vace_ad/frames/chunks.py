"""Tables that come in pieces: an iterator of tables, or a Parquet file read bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from vace_ad.errors import TableReadError
from vace_ad.frames.table import Table, as_table

ROWS = 65_536  # that a Parquet file is read in


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
        raise TableReadError("an iterator without a table came; give at least one")
    values = np.concatenate([table.values for table in tables])
    times = [table.time for table in tables if table.time is not None]
    time = np.concatenate(times) if len(times) == len(tables) else None
    return replace(tables[0], values=values, time=time)


def parquet_chunks(path: Path, rows: int = ROWS) -> Iterator[Any]:
    """A Parquet file as polars tables of so many rows."""
    with open_parquet(path) as (whole, n_rows):
        for start in range(0, n_rows, rows):
            yield whole.slice(start, rows).collect()


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
