"""A memory bank: a coreset of training embeddings, and the cosine distance to the nearest of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SHARE, _LEAST = 0.1, 500  # of the embeddings that are kept
_NEIGHBOURS = 3
_BLOCK = 4096  # embeddings compared at a time
_SHORTEST = 1e-8  # vector that has a direction


@dataclass(frozen=True)
class MemoryBank:
    """Mean cosine distance to the three nearest kept embeddings."""

    kept: Array  # (n_kept, d_z), unit length

    @classmethod
    def fit(cls, embeddings: NDArray[np.floating], seed: int) -> MemoryBank:
        """Keep the real embedding nearest each k-means centre: 10 %, at least 500."""
        units = _unit(embeddings)
        centres = _centres(units, min(len(units), max(_LEAST, round(_SHARE * len(units)))), seed)
        return cls(units[np.unique([int(np.argmax(units @ centre)) for centre in centres])])

    def score(self, embeddings: NDArray[np.floating]) -> Array:
        """Distance of each embedding, (n,)."""
        units, k = _unit(embeddings), min(_NEIGHBOURS, len(self.kept))
        blocks = [units[a : a + _BLOCK] for a in range(0, len(units), _BLOCK)]
        nearest = [np.partition(1 - block @ self.kept.T, k - 1, axis=1)[:, :k] for block in blocks]
        return np.concatenate([each.mean(axis=1) for each in nearest])


def _unit(vectors: NDArray[np.floating]) -> Array:
    v = np.asarray(vectors, np.float64)
    return np.asarray(v / np.maximum(_SHORTEST, np.linalg.norm(v, axis=1, keepdims=True)))


def _centres(units: Array, size: int, seed: int) -> Array:
    """At most `size` centres by MiniBatch k-means, put back on the sphere."""
    distinct = np.unique(units, axis=0)
    if len(distinct) <= size:
        return _unit(distinct)
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    batch = max(1024, size)
    means = MiniBatchKMeans(n_clusters=size, random_state=seed, batch_size=batch, n_init=1)
    with threadpool_limits(limits=1):  # threads that wait for each other cost more than they do
        means.fit(units)
    return _unit(means.cluster_centers_)
