"""A regular step with a few rows missing: the missing rows are put in, so that patches go on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LONGEST = 5  # missing rows in a row that are put in; longer pauses stay jumps in time
MOST = 0.1  # share of rows that may be missing


def even_out(
    values: NDArray[np.float64],
    time: NDArray[np.datetime64],
    step: int,
    irregular: float,
    *,
    longest: int = LONGEST,
) -> tuple[NDArray[np.float64], NDArray[np.datetime64], NDArray[np.bool_]]:
    """Put rows of NaN where single rows of a regular table are missing.

    Also which rows are real, (n,). A table whose stamps are off the step, or that misses more
    than a tenth of its rows in this way, stays as it is: there, resampling is a choice.
    """
    real = np.ones(len(time), dtype=bool)
    pauses = np.diff(time).astype("timedelta64[ns]").astype(np.int64)
    missing = np.round(pauses / step).astype(np.int64) - 1  # rows that should lie between
    missing[(missing < 1) | (missing > longest)] = 0
    total = int(missing.sum())
    if total == 0 or irregular > 0 or total > MOST * len(time):
        return values, time, real
    before = np.flatnonzero(missing)  # rows in front of a hole
    at = np.repeat(before + 1, missing[before])
    rank = np.concatenate([np.arange(1, n + 1) for n in missing[before].tolist()])
    share = rank / (np.repeat(missing[before], missing[before]) + 1)
    between = np.round(share * np.repeat(pauses[before], missing[before])).astype(np.int64)
    stamps = np.repeat(time[before], missing[before]) + between.astype("timedelta64[ns]")
    return (
        np.insert(values, at, np.nan, axis=0),
        np.insert(time, at, stamps),
        np.insert(real, at, False),
    )
