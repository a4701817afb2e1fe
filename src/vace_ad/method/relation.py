"""Relation: how channels move together, which each channel on its own cannot tell.

Every channel is foretold, row by row, from all the others by a ridge regression of training. What
is left swings more where a channel goes its own way, even within its usual range and rhythm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.method.folds import FOLDS

Array = NDArray[np.float64]

RIDGE = 0.03  # added to the correlations' diagonal
FARTHEST = 20  # deviations at which a row counts no more, so that one channel cannot drown all
BLOCK = 64  # rows in one product: always as many, so that a row's last bits do not vary


@dataclass(frozen=True)
class Relation:
    """What of each channel the others do not foretell."""

    matrix: Array  # (n_channels, n_channels), from scaled rows to residuals

    @classmethod
    def fit(cls, parts: Sequence[Array]) -> tuple[Relation, list[Array]]:
        """Learn from scaled training rows; also their residuals, held out, deviation one.

        Held out, because with many channels and few rows a regression foretells its own rows far
        better than those to come.
        """
        rows = np.clip(np.concatenate(parts), -FARTHEST, FARTHEST)
        blocks = np.array_split(rows, FOLDS)
        products = np.stack([block.T @ block for block in blocks])
        total = products.sum(axis=0)
        for block, own in zip(blocks, products, strict=True):
            block[:] = block @ _to_residuals(total - own, len(rows) - len(block))
        deviation = rows.std(axis=0)
        unit = np.where(deviation > 0, deviation, 1.0)
        borders = np.cumsum([len(part) for part in parts])[:-1]
        return cls(_to_residuals(total, len(rows)) / unit), np.split(rows / unit, borders)

    def residuals(self, rows: Array, out: Array | None = None) -> Array:
        """The residuals of scaled rows (n, n_channels), into `out`, which may be the rows."""
        found = np.empty_like(rows) if out is None else out
        block = np.zeros((BLOCK, rows.shape[1]))
        for a in range(0, len(rows), BLOCK):
            some = rows[a : a + BLOCK]
            np.clip(some, -FARTHEST, FARTHEST, out=block[: len(some)])
            found[a : a + BLOCK] = (block @ self.matrix)[: len(some)]
        return found


def _to_residuals(products: Array, n: int) -> Array:
    """The matrix from rows to residuals, from the sums of products of n rows.

    The regression of a channel on the others is read off the inverse of the covariances.
    """
    size = len(products)
    if size == 1:
        return np.zeros((1, 1))  # nothing to relate to
    inverse = np.linalg.inv(products / max(n, 1) + RIDGE * np.eye(size))
    return np.asarray(inverse / np.diag(inverse))
