"""Patches x_i = X[i : i+P] of complete stretches, and the trajectory Z of their embeddings.

No step holds all patches: a stretch is viewed through a sliding window, and only the patches of
one batch are ever copied, normalised and embedded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.progress import Progress, silent

if TYPE_CHECKING:
    from vace_ad.engine import Engine

FLOOR = 1e-5  # ε of the patch normalisation
TOGETHER = 2**16  # values that are normalised in one go, so that they stay in cache
EMBEDDED = 1024  # patches embedded between two looks at the progress bar


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


def embed(
    engine: Engine,
    patches: PatchSet,
    index: NDArray[np.intp],
    progress: Progress = silent,
    stage: str = "embedding",
) -> Iterator[NDArray[np.float32]]:
    """Embeddings of the patches of these numbers, in blocks (≤ EMBEDDED, n_encoders, d_z)."""

    def one(batch: NDArray[np.intp]) -> NDArray[np.float32]:
        return engine.embed(patches.gather(batch))

    for a in range(0, len(index), EMBEDDED):
        block = index[a : a + EMBEDDED]
        batches = [block[b : b + engine.batch] for b in range(0, len(block), engine.batch)]
        if min(len(batches), engine.callers) == 1:
            parts = [one(batch) for batch in batches]
        else:  # while one batch is gathered, or drains, another keeps the engine busy
            with ThreadPoolExecutor(engine.callers) as executor:
                parts = list(executor.map(one, batches))
        yield np.concatenate(parts)
        progress(stage, min(a + EMBEDDED, len(index)), len(index))


def embed_one(
    engine: Engine,
    rows: NDArray[np.float64],  # (P, n_channels)
    scale: NDArray[np.float64],  # (n_channels,)
) -> NDArray[np.float32]:
    """The embedding (1, n_encoders, d_z) of one patch: a live row's, without a PatchSet's cost."""
    return engine.embed(normalise(rows.T[None].copy(), scale))


def training_stride(n_patches: int, offset: int, least: int, most: int) -> int:
    """The smallest divisor of the offset, from `least` on, that leaves at most `most` patches.

    A divisor, so that the neighbour of a patch on the grid is on the grid too.
    """
    divisors = [d for d in range(min(least, offset), offset + 1) if offset % d == 0]
    return next((d for d in divisors if n_patches <= d * most), divisors[-1])


def velocity_pairs(patches: PatchSet, index: NDArray[np.intp], offset: int) -> NDArray[np.intp]:
    """Places (n_pairs, 2) in `index` of patches that lie `offset` rows apart."""
    ends, inside = patches.shifted(index, offset)
    place = np.minimum(np.searchsorted(index, ends), len(index) - 1)
    found = inside & (index[place] == ends)
    return np.stack([np.flatnonzero(found), place[found]], axis=1)
