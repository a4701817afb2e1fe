"""Patches x_i = X[i : i+P] of complete stretches, gathered on demand and normalised.

No step holds all patches: a stretch is viewed through a sliding window, and only the patches of
one batch are ever copied.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

FLOOR = 1e-5  # ε of the patch normalisation
TOGETHER = 2**16  # values that are normalised in one go, so that they stay in cache


class PatchSet:
    """The patches of several stretches, numbered through; none crosses a border."""

    def __init__(
        self,
        stretches: Sequence[NDArray[np.float64]],  # each (n_rows, n_channels), n_rows ≥ P
        patch_length: int,
        scale: NDArray[np.float64],  # (n_channels,), the unit of FLOOR in each channel
    ) -> None:
        # (n_patches, P, n_channels): a patch is copied row by row, as it lies in memory
        self._views = [
            sliding_window_view(rows, patch_length, axis=0).transpose(0, 2, 1) for rows in stretches
        ]
        counts = [len(view) for view in self._views]
        self.borders = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        self._scale = scale

    def __len__(self) -> int:
        return int(self.borders[-1])

    @property
    def n_channels(self) -> int:
        """Channels of every patch."""
        return int(self._views[0].shape[2])

    def gather(self, index: NDArray[np.intp]) -> NDArray[np.float32]:
        """The normalised patches of these numbers, (n, n_channels, P)."""
        _, patch_length, n_channels = self._views[0].shape
        patches = np.empty((len(index), n_channels, patch_length), np.float32)
        owner = self._owner(index)
        step = max(1, TOGETHER // (n_channels * patch_length))
        for k in np.unique(owner):
            mine = np.flatnonzero(owner == k)
            for a in range(0, len(mine), step):
                some = mine[a : a + step]
                block = self._views[k][index[some] - self.borders[k]].transpose(0, 2, 1)
                patches[some] = normalise(np.ascontiguousarray(block), self._scale)
        return patches

    def shifted(
        self, index: NDArray[np.intp], offset: int
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Numbers of the patches `offset` rows on, and whether they exist in the same stretch."""
        owner = self._owner(index)
        moved = index + offset
        inside = (moved >= self.borders[owner]) & (moved < self.borders[owner + 1])
        return moved, inside

    def rows(self, index: NDArray[np.intp]) -> NDArray[np.intp]:
        """The rows where patches start, if the stretches are laid end to end."""
        return np.asarray(index + self._owner(index) * (self._views[0].shape[1] - 1))

    def grid(self, stride: int) -> NDArray[np.intp]:
        """Every `stride`-th patch of each stretch."""
        return np.concatenate(
            [np.arange(a, b, stride) for a, b in zip(self.borders, self.borders[1:], strict=False)]
        )

    def _owner(self, index: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.searchsorted(self.borders, index, side="right") - 1


def normalise(
    patches: NDArray[np.float64],  # (n, n_channels, P), overwritten
    scale: NDArray[np.float64],  # (n_channels,)
) -> NDArray[np.float32]:
    """RevIN without affine part: (x − mean) / max(√(var + ε), ε) for each patch and channel.

    The first value is taken off before the mean, so that a constant channel at a huge offset
    becomes exactly zero instead of rounding noise.
    """
    unit = (scale * scale)[:, None]  # (n_channels, 1)
    patches -= patches[:, :, :1].copy()
    patches -= patches.mean(axis=2, keepdims=True)
    variance = np.einsum("ncp,ncp->nc", patches, patches)[:, :, None] / patches.shape[2]
    patches /= np.maximum(np.sqrt(variance + FLOOR * unit), FLOOR * scale[:, None])
    return patches.astype(np.float32)


def distinct(patches: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each different patch comes first, and for every patch, which of those it equals.

    Rounding depends on a patch's place in a matrix product. Two equal patches must not differ by
    that: the direction from one to the other would be noise instead of none.
    """
    seen: dict[bytes, int] = {}
    same = np.array([seen.setdefault(patch.tobytes(), len(seen)) for patch in patches], np.intp)
    return np.unique(same, return_index=True)[1], same
