"""The trajectory Z of embeddings along a series, block by block, and its velocities."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine import Engine
from vace_ad.engine.patches import PatchSet, normalise
from vace_ad.progress import Progress, silent

BLOCK = 1024  # patches embedded between two looks at the progress bar


def embed(
    engine: Engine,
    patches: PatchSet,
    index: NDArray[np.intp],
    progress: Progress = silent,
    stage: str = "embedding",
) -> Iterator[NDArray[np.float32]]:
    """Embeddings of the patches of these numbers, in blocks (≤ BLOCK, n_encoders, d_z)."""

    def one(batch: NDArray[np.intp]) -> NDArray[np.float32]:
        return engine.embed(patches.gather(batch))

    for a in range(0, len(index), BLOCK):
        block = index[a : a + BLOCK]
        batches = [block[b : b + engine.batch] for b in range(0, len(block), engine.batch)]
        if min(len(batches), engine.callers) == 1:
            parts = [one(batch) for batch in batches]
        else:  # while one batch is gathered, or drains, another keeps the engine busy
            with ThreadPoolExecutor(engine.callers) as executor:
                parts = list(executor.map(one, batches))
        yield np.concatenate(parts)
        progress(stage, min(a + BLOCK, len(index)), len(index))


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
