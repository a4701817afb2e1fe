"""Rows in order of time, one row a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def order_rows(
    values: NDArray[np.float64], time: NDArray[np.datetime64]
) -> tuple[NDArray[np.float64], NDArray[np.datetime64], list[str]]:
    """Sort rows by time and average those of the same time; say what was done.

    Missing values do not enter the mean.
    """
    notes = []
    back = int((np.diff(time) < np.timedelta64(0)).sum())
    if back:
        order = np.argsort(time, kind="stable")
        values, time = values[order], time[order]
        notes.append(f"rows put in order of time ({back:,} steps went backwards)")
    first = np.ones(len(time), dtype=bool)
    first[1:] = time[1:] != time[:-1]
    if not first.all():
        starts = np.flatnonzero(first)
        values = _means(values, starts)
        time = time[starts]
        notes.append(f"{int((~first).sum()):,} rows averaged with rows of the same time")
    return values, time, notes


def _means(values: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Means of the rows from each start to the next, (n_starts, D); NaN where all are missing."""
    known = ~np.isnan(values)
    counts = np.add.reduceat(known, starts, axis=0, dtype=np.int64)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts, axis=0)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
