"""Cross-validation folds: contiguous blocks of training rows, each held out once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FOLDS = 4
LEAST = 8  # windows that a fit needs; with fewer outside the guard, the guard falls


class Fold(NamedTuple):
    """Places of windows to fit on and of windows held out."""

    fit: NDArray[np.intp]
    held: NDArray[np.intp]


def contiguous_folds(
    starts: NDArray[np.intp],  # rows where windows start, rising
    length: int,  # rows a window covers
) -> Iterator[Fold]:
    """A fold for each block in turn; windows that share a row with it are in neither part.

    Of fewer windows than blocks, some blocks hold none.
    """
    edges = np.linspace(0, len(starts), FOLDS + 1).astype(np.intp)
    for a, b in pairwise(edges):
        if a == b:
            yield Fold(np.arange(len(starts)), np.arange(0))
            continue
        before = np.flatnonzero(starts <= starts[a] - length)
        after = np.flatnonzero(starts >= starts[b - 1] + length)
        fit = np.concatenate([before, after])
        if len(fit) < LEAST:
            fit = np.concatenate([np.arange(a), np.arange(b, len(starts))])
        if len(fit) == 0:
            fit = np.arange(a, b)
        yield Fold(fit, np.arange(a, b))
