"""Relation: how channels move together, which each channel on its own cannot tell.

Every channel is foretold, row by row, from all the others by a ridge regression of training. What
is left swings more where a channel goes its own way, even within its usual range and rhythm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RIDGE = 0.03  # added to the correlations' diagonal
FARTHEST = 20  # deviations at which a row counts no more, so that one channel cannot drown all
BLOCK = 64  # rows in one product: always as many, so that a row's last bits do not vary


@dataclass(frozen=True)
class Relation:
    """What of each channel the others do not foretell."""

    matrix: Array  # (n_channels, n_channels), from scaled rows to residuals

    @classmethod
    def fit(cls, parts: Sequence[Array]) -> Relation:
        """Learn from scaled training rows; the residuals of these have deviation one."""
        n = sum(map(len, parts))
        near = [np.clip(part, -FARTHEST, FARTHEST) for part in parts]
        size = near[0].shape[1]
        products = sum((part.T @ part for part in near), np.zeros((size, size))) / n
        if size == 1:
            return cls(np.zeros((1, 1)))  # nothing to relate to
        # The regression of a channel on the others, read off the inverse of the covariances.
        inverse = np.linalg.inv(products + RIDGE * np.eye(size))
        matrix = inverse / np.diag(inverse)
        deviation = np.sqrt(np.einsum("ij,ik,kj->j", matrix, products, matrix, optimize=True))
        return cls(matrix / np.where(deviation > 0, deviation, 1.0))

    def residuals(self, rows: Array, out: Array | None = None) -> Array:
        """The residuals of scaled rows (n, n_channels), into `out`, which may be the rows."""
        found = np.empty_like(rows) if out is None else out
        block = np.zeros((BLOCK, rows.shape[1]))
        for a in range(0, len(rows), BLOCK):
            some = rows[a : a + BLOCK]
            np.clip(some, -FARTHEST, FARTHEST, out=block[: len(some)])
            found[a : a + BLOCK] = (block @ self.matrix)[: len(some)]
        return found
