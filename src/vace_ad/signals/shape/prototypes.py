"""Prototypes of unit vectors by k-means, and the cosine distance to the nearest of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import needs
from vace_ad.signals.row_buffer import blocked_matmul

EPSILON = 1e-8  # shortest vector that has a direction


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Each vector v / max(ε, ‖v‖), (n, d)."""
    v = np.asarray(vectors, np.float64)
    return np.asarray(v / np.maximum(EPSILON, np.linalg.norm(v, axis=1, keepdims=True)))


def cluster(
    units: NDArray[np.float64], size: int, seed: int, method: str = "minibatch"
) -> NDArray[np.float64]:
    """At most `size` centres of unit vectors, on the sphere, by MiniBatch or spherical k-means."""
    if len({vector.tobytes() for vector in units + 0.0}) <= size:  # + 0.0: no zero is negative
        return unit(np.unique(units, axis=0))
    if method == "spherical":
        return _spherical(units, size, np.random.default_rng(seed))
    with needs("scikit-learn", "paper", "k-means in mini-batches, as in the paper's presets,"):
        from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    means = MiniBatchKMeans(
        n_clusters=size, random_state=seed, batch_size=max(1024, size), n_init=1
    )
    with threadpool_limits(limits=1):  # threads that wait for each other cost more than they do
        means.fit(units)
    return unit(means.cluster_centers_)


def _spherical(
    units: NDArray[np.float64], size: int, rng: np.random.Generator, rounds: int = 8
) -> NDArray[np.float64]:
    """A few rounds of k-means by cosine, from vectors drawn at random."""
    centres = units[rng.choice(len(units), size, replace=False)]
    d, values = units.shape[1], units.ravel()
    for _ in range(rounds):
        nearest = np.argmax(units @ centres.T, axis=1)
        places = nearest[:, None] * d + np.arange(d)  # of each value among the sums
        sums = np.bincount(places.ravel(), values, centres.size).reshape(centres.shape)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(norms > EPSILON, sums / np.maximum(norms, EPSILON), centres)
    return centres


def mean_cosine_distance(
    units: NDArray[np.float64],  # (n, d)
    prototypes: NDArray[np.float64],  # (K, d)
    neighbours: int,
    block: int = 4096,
) -> NDArray[np.float64]:
    """Mean of 1 − cosine over the `neighbours` nearest prototypes, (n,)."""
    k = min(neighbours, len(prototypes))
    out = np.empty(len(units))
    for a in range(0, len(units), block):
        distance = 1 - blocked_matmul(units[a : a + block], prototypes.T)  # (block, K)
        nearest = np.partition(distance, k - 1, axis=1)[:, :k]
        out[a : a + block] = nearest.mean(axis=1)
    return out
