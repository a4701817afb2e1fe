"""Even out an irregular step: rows averaged into equal spans of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError
from vace_ad.frames.time import duration_words

# A table that would grow beyond this is a mistake in the step, or in a single time, not a wish.
_MOST_CELLS = 200_000_000
_FEW_ROWS, _GROWTH = 1_000_000, 20  # so many rows are fine; of more, at most so many times as many


def resample(
    values: NDArray[np.float64], time: NDArray[np.datetime64], every: int
) -> tuple[NDArray[np.float64], NDArray[np.datetime64]]:
    """Average the rows of each span of `every` nanoseconds.

    Spans begin at whole multiples of `every`, and a span's time is its beginning. Missing values
    do not enter the mean; a span without any row is a row of NaN, so that silence stays visible.
    """
    stamps = time.astype("datetime64[ns]").view(np.int64)  # (n,)
    pauses = np.diff(stamps)
    step = float(np.median(pauses[pauses > 0])) if (pauses > 0).any() else float(every)
    if every < 0.75 * step:
        raise InputError(
            f"resampling to {duration_words(every)} would invent rows: the table's step is "
            f"{duration_words(step)}; give at least that"
        )
    first = int(stamps[0]) // every
    n_spans = int(stamps[-1]) // every - first + 1  # Python's numbers: this may not overflow
    if n_spans * values.shape[1] > _MOST_CELLS or n_spans > max(_FEW_ROWS, _GROWTH * len(stamps)):
        raise InputError(
            f"resampling to {duration_words(every)} makes {n_spans:,} rows of {len(stamps):,}; "
            "give a longer span, or look for a wrong time"
        )
    span = stamps // every - first  # (n,), never decreasing
    starts = np.flatnonzero(np.diff(span, prepend=-1))  # first row of each span that has rows
    known = ~np.isnan(values)
    counts = np.add.reduceat(known, starts, axis=0, dtype=np.int64)  # (n_filled, D)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts, axis=0)
    means = np.full((n_spans, values.shape[1]), np.nan)
    means[span[starts]] = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    edges = (first + np.arange(n_spans)) * every
    return means, edges.view("datetime64[ns]")
