"""The paper's two signals patch by patch, along the trajectory of a table's embeddings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine.patches import PatchSet
from vace_ad.engine.trajectory import embed
from vace_ad.errors import InputError, TooShortError
from vace_ad.frames.table import Table
from vace_ad.progress import Progress, silent
from vace_ad.signals.shape import Shape

Array = NDArray[np.float64]


def trajectory(shape: Shape, table: Table, progress: Progress = silent) -> NDArray[np.float32]:
    """The embedding of every patch, (n_patches, n_encoders, d_z); NaN where a value is missing."""
    length = shape.config.length
    if len(table) < length:
        raise TooShortError(f"got {len(table)} rows; need at least patch_length={length}")
    rows = table.block(0, len(table))
    patches = PatchSet([rows], length, shape.scale)
    z = np.concatenate(list(embed(shape.engine.engine, patches, patches.grid(1), progress)))
    for row in np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist():
        z[max(0, row - length + 1) : row + 1] = np.nan
    return z


def position_scores(shape: Shape, table: Table) -> Array:
    """The position signal of each patch, (n_patches,), mean over encoders."""
    z = trajectory(shape, table)
    each = [evidence.position.score(z[:, k]) for k, evidence in enumerate(shape.learned)]
    return np.asarray(np.mean(each, axis=0))


def direction_scores(shape: Shape, table: Table) -> Array:
    """The direction signal of each patch, (n_patches,), mean over encoders.

    A patch without the neighbour that its velocity needs has the training's median.
    """
    offset, backward = shape.config.offset, shape.config.reproduction.velocity == "backward"
    z = trajectory(shape, table)
    total = np.zeros(len(z))
    own = slice(offset, None) if backward else slice(None, -offset)
    for k, evidence in enumerate(shape.learned):
        if evidence.direction is None:
            raise InputError("this detector was fitted with direction=False")
        each = np.full(len(z), evidence.direction_median)
        if len(z) > offset:
            each[own] = evidence.direction.score(z[offset:, k] - z[:-offset, k])
        total += each
    return total / len(shape.learned)
