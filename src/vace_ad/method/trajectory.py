"""The trajectory Z of embeddings along a series, block by block, and its velocities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine import Engine
from vace_ad.method.patches import PatchSet
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
    for a in range(0, len(index), BLOCK):
        block = index[a : a + BLOCK]
        parts = [
            engine.embed(patches.gather(block[b : b + engine.batch]))
            for b in range(0, len(block), engine.batch)
        ]
        yield np.concatenate(parts)
        progress(stage, min(a + BLOCK, len(index)), len(index))


def training_index(
    patches: PatchSet, stride: int, offset: int, most: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which training patches to embed, and which of them form velocities.

    Every `stride`-th patch, or, where these are more than `most`, evenly spaced ones among them
    together with their neighbours `offset` rows on. Returns patch numbers (n,), and pairs
    (n_pairs, 2) of places in them: where a velocity starts and where it ends.
    """
    index = patches.grid(stride)
    if len(index) > most:
        starts = index[np.linspace(0, len(index) - 1, most // 2).astype(np.intp)]
        ends, inside = patches.shifted(starts, offset)
        index = np.union1d(starts, ends[inside])
    ends, inside = patches.shifted(index, offset)
    place = np.minimum(np.searchsorted(index, ends), len(index) - 1)
    found = inside & (index[place] == ends)
    return index, np.stack([np.flatnonzero(found), place[found]], axis=1)
