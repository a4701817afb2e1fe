"""The trajectory Z of embeddings along a series, block by block on several threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from vace_ad.engine import Engine
from vace_ad.engine.patches import PatchSet, normalise
from vace_ad.progress import Progress, silent


def thread_count() -> int:
    """As many threads as BLAS would use.

    So OMP_NUM_THREADS, the processors this process may run on, and limits set by threadpoolctl
    (as joblib does in its workers) all hold for us too.
    """
    return _count(ThreadpoolController().select(user_api="blas"))


def pool() -> Executor:
    """Threads of this process that stay, for small parts of work."""
    global _pool
    if _pool is None or _pool[0] != os.getpid():  # a forked process has none of its parent's
        _pool = (os.getpid(), ThreadPoolExecutor(thread_count(), "vace"))
    return _pool[1]


_pool: tuple[int, Executor] | None = None


@contextmanager
def workers() -> Iterator[Executor]:
    """That many threads, while BLAS itself uses one in each.

    Threads that each work on their own part are quicker than one product at a time shared by all
    threads, above all on a busy machine, and what they compute does not depend on their number.
    """
    controller = ThreadpoolController().select(user_api="blas")
    threads = _count(controller)
    with controller.limit(limits=1), ThreadPoolExecutor(threads, "vace") as executor:
        yield executor


def _count(controller: ThreadpoolController) -> int:
    counts = [library["num_threads"] for library in controller.info()]
    return max(counts) if counts else os.cpu_count() or 1


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
