"""Training data: tables or Parquet files, their complete stretches, thinned where very long."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.errors import InputError, TooShortError, VaceWarning
from vace_ad.frames.chunks import open_parquet
from vace_ad.frames.segments import Rebuild, Segments, complete_stretches, missing_cells
from vace_ad.frames.table import Table, as_table

Learn = Callable[[Sequence[NDArray[np.float64]]], Rebuild]
PIECES = 16  # that a training part beyond max_fit_rows is thinned to


def training_tables(data: Any, config: VACEConfig) -> tuple[list[Table], int]:
    """One table or Parquet path, or a list of them; and the number of rows that they have.

    Of a file with more rows than a fit uses, only the pieces that it uses are read.
    """
    tables: list[Table] = []
    n_rows = 0
    for part in data if _are_several(data) else [data]:
        if isinstance(part, str | PathLike):
            pieces, count = _parquet_pieces(Path(part), config)
        else:
            pieces = [as_table(part)]
            count = len(pieces[0])
        tables += pieces
        n_rows += count
    return tables, n_rows


def _are_several(data: Any) -> bool:
    """Whether this is a list of tables or paths, and not one table written as a list of rows."""
    if not isinstance(data, list | tuple) or len(data) == 0:
        return False
    numbers = np.isscalar(data[0]) and not isinstance(data[0], str)
    return not numbers and not all(isinstance(row, list | tuple) for row in data)


def _parquet_pieces(path: Path, config: VACEConfig) -> tuple[list[Table], int]:
    with open_parquet(path) as (whole, n_rows):
        cuts = [slice(0, n_rows)]
        if n_rows > config.max_fit_rows:
            size = max(config.least_rows, config.max_fit_rows // PIECES)
            cuts = _evenly(n_rows, PIECES, size)
        pieces = [whole.slice(cut.start, cut.stop - cut.start).collect() for cut in cuts]
        return [as_table(piece) for piece in pieces], n_rows


def training_parts(
    tables: Sequence[Table], names: Sequence[str], config: VACEConfig, learn: Learn
) -> list[NDArray[np.float64]]:
    """The stretches of all training tables that hold a patch and its neighbour.

    Where channels are missing for long, `learn` makes of roughly filled rows the function that
    rebuilds them, as it does in scoring.
    """
    dead = np.all([missing_cells(table.values).all(axis=0) for table in tables], axis=0)
    if dead.any() and sum(map(len, tables)):
        listing = ", ".join(
            repr(name) for name, is_dead in zip(names, dead, strict=True) if is_dead
        )
        raise InputError(f"channels without one finite value: {listing}; drop them")
    needed = config.least_rows
    parts = [part for table in tables for part in _stretches(table, config, None, 1)]
    used, present = sum(map(len, parts)), sum(map(len, tables))
    if used < present:  # missing cells that no short gap explains
        rebuild = learn([_roughly_filled(table.values) for table in tables])
        parts = [part for table in tables for part in _stretches(table, config, rebuild, 1)]
    long_enough = [part for part in parts if len(part) >= needed]
    if not long_enough:
        longest = max(map(len, tables))
        gaps = " without a gap" if longest >= needed else ""
        raise TooShortError(
            f"{longest} training rows came; {needed} in a row{gaps} are needed (patch_length "
            f"{config.length} + velocity offset {config.offset} + 1); give more rows or a "
            "smaller patch_length"
        )
    if all((part == part[0]).all() for part in long_enough):
        warnings.warn(
            "every channel is constant in training: there is nothing to learn",
            VaceWarning,
            stacklevel=3,
        )
    return _thinned(long_enough, config.max_fit_rows, needed)


def _stretches(
    table: Table, config: VACEConfig, rebuild: Rebuild | None, least: int
) -> list[NDArray[np.float64]]:
    values = np.ascontiguousarray(table.values, np.float64)
    segments = Segments(values.shape[1], config.max_gap, config.max_missing, rebuild)
    pieces = segments.add(values, table.cuts())
    return complete_stretches([*pieces, *segments.finish()], least)


def _roughly_filled(values: NDArray[Any]) -> NDArray[np.float64]:
    """The values with the channel's median where a cell is missing."""
    filled = np.where(missing_cells(values), np.nan, values).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a channel missing all through one table
        middle = np.nan_to_num(np.nanmedian(filled, axis=0))
    return np.where(np.isnan(filled), middle, filled)


def _thinned(
    parts: Sequence[NDArray[np.float64]], most: int, least: int
) -> list[NDArray[np.float64]]:
    """Evenly spaced pieces of long parts, about `most` rows in all, none below `least`."""
    total = sum(map(len, parts))
    if total <= most:
        return list(parts)
    size = max(least, most // PIECES)
    counts = [max(1, round(PIECES * len(part) / total)) for part in parts]
    return [
        part[cut]
        for part, count in zip(parts, counts, strict=True)
        for cut in _evenly(len(part), count, size)
    ]


def _evenly(n_rows: int, count: int, size: int) -> list[slice]:
    """So many evenly spaced pieces of `size` rows, or the whole where they would hold it all."""
    if count * size >= n_rows:
        return [slice(0, n_rows)]
    starts = np.linspace(0, n_rows - size, count).astype(np.intp)
    return [slice(start, start + size) for start in starts.tolist()]


def step_seconds(tables: Sequence[Table]) -> float | None:
    """The usual time between two rows, if the tables carry time."""
    steps = [np.diff(table.time) for table in tables if table.time is not None and len(table) > 1]
    if not steps:
        return None
    return float(np.median(np.concatenate(steps)) / np.timedelta64(1, "s"))
