"""Training tables: one or a list, their complete stretches, thinned where they are very long."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.errors import InputError, TooShortError, VaceWarning
from vace_ad.frames.gaps import stretches
from vace_ad.frames.table import Table, as_table

PIECES = 16  # that a training part beyond max_fit_rows is thinned to


def training_tables(data: Any) -> list[Table]:
    """One table, or a list of tables."""
    many = isinstance(data, list | tuple) and len(data) > 0 and not np.isscalar(data[0])
    is_rows = many and all(isinstance(row, list | tuple) for row in data)
    return [as_table(part) for part in data] if many and not is_rows else [as_table(data)]


def training_parts(
    values: Sequence[NDArray[np.float64]], names: Sequence[str], config: VACEConfig
) -> list[NDArray[np.float64]]:
    """The complete stretches of all training tables that hold a patch and its neighbour."""
    dead = np.all([~np.isfinite(v).any(axis=0) for v in values], axis=0)
    if dead.any() and sum(map(len, values)):
        listing = ", ".join(
            repr(name) for name, is_dead in zip(names, dead, strict=True) if is_dead
        )
        raise InputError(f"channels without one finite value: {listing}; drop them")
    needed = config.patch_length + config.offset + 1
    parts = [piece.values for v in values for piece in stretches(v, config.max_gap, needed)]
    if not parts:
        longest = max(map(len, values))
        gaps = " without a gap" if longest >= needed else ""
        raise TooShortError(
            f"{longest} training rows came; {needed} in a row{gaps} are needed (patch_length "
            f"{config.patch_length} + velocity offset {config.offset} + 1); give more rows or a "
            "smaller patch_length"
        )
    if all((part == part[0]).all() for part in parts):
        warnings.warn(
            "every channel is constant in training: there is nothing to learn",
            VaceWarning,
            stacklevel=3,
        )
    return _thinned(parts, config.max_fit_rows, needed)


def _thinned(
    parts: Sequence[NDArray[np.float64]], most: int, least: int
) -> list[NDArray[np.float64]]:
    """Evenly spaced pieces of long parts, about `most` rows in all, none below `least`."""
    total = sum(map(len, parts))
    if total <= most:
        return list(parts)
    size = max(least, most // PIECES)
    pieces = []
    for part in parts:
        count = max(1, round(PIECES * len(part) / total))
        if count * size >= len(part):
            pieces.append(part)
            continue
        starts = np.linspace(0, len(part) - size, count).astype(np.intp)
        pieces += [part[a : a + size] for a in starts.tolist()]
    return pieces


def step_seconds(tables: Sequence[Table]) -> float | None:
    """The usual time between two rows, if the tables carry time."""
    steps = [np.diff(table.time) for table in tables if table.time is not None and len(table) > 1]
    if not steps:
        return None
    return float(np.median(np.concatenate(steps)) / np.timedelta64(1, "s"))
