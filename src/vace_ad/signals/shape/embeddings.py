"""Training embeddings: where they lie (position), where they move (direction), their geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import needs
from vace_ad.signals.row_buffer import blocked_matmul

Embeddings = NDArray[np.floating]  # (n, d_z)
BANK_NEIGHBOURS = 3
EPSILON = 1e-8  # shortest vector that has a direction
Verdict = Literal["healthy", "collapsed", "isotropic"]


class Position(Protocol):
    """A fitted position score."""

    def score(self, embeddings: Embeddings) -> NDArray[np.float64]:
        """A score (n,) for embeddings (n, d_z)."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """s_p = (z − μ)ᵀ(Σ + εI)⁻¹(z − μ), or its square root."""

    mean: NDArray[np.float64]  # μ, (d_z,)
    whitening: NDArray[np.float64]  # Q(Λ + ε)^-½ for Σ = QΛQᵀ, (d_z, d_z)
    root: bool

    @classmethod
    def fit(cls, embeddings: Embeddings, epsilon: float, root: bool) -> Gaussian:
        """The Gaussian of training embeddings, through the eigenvectors of Σ."""
        mean, eigenvalues, vectors = moments(embeddings)
        return cls(mean, vectors / np.sqrt(eigenvalues + epsilon), root)

    def score(self, embeddings: Embeddings) -> NDArray[np.float64]:
        """Mahalanobis distance of each embedding, (n,)."""
        white = blocked_matmul(embeddings - self.mean, self.whitening)
        squared = (white * white).sum(axis=1)
        return np.asarray(np.sqrt(squared) if self.root else squared)


@dataclass(frozen=True)
class MemoryBank:
    """Mean cosine distance to the nearest of a coreset of training embeddings."""

    bank: NDArray[np.float64]  # (n_kept, d_z), unit length

    @classmethod
    def fit(cls, embeddings: Embeddings, seed: int) -> MemoryBank:
        """Keep the real embedding nearest each k-means centre: 10 %, at least 500."""
        units = unit(embeddings)
        size = min(len(units), max(500, round(0.1 * len(units))))
        centres = cluster(units, size, seed)
        nearest = np.unique([int(np.argmax(units @ centre)) for centre in centres])
        return cls(units[nearest])

    def score(self, embeddings: Embeddings) -> NDArray[np.float64]:
        """Distance of each embedding, (n,)."""
        return mean_cosine_distance(unit(embeddings), self.bank, BANK_NEIGHBOURS)


def moments(
    embeddings: Embeddings,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean, and eigenvalues (ascending, none below 0) and eigenvectors of the covariance."""
    z = np.asarray(embeddings, np.float64)
    mean = z.mean(axis=0)
    centred = z - mean
    covariance = centred.T @ centred / max(1, len(z) - 1)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    return mean, np.maximum(eigenvalues, 0), vectors


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


@dataclass(frozen=True)
class Direction:
    """s_d: mean of 1 − ⟨v, prototype⟩ over the k_np nearest prototypes of training velocities."""

    prototypes: NDArray[np.float64]  # (K, d_z), unit length
    neighbours: int  # k_np

    @classmethod
    def fit(
        cls,
        differences: NDArray[np.floating],  # z_{t+δ} − z_t of training, (n, d_z)
        size: int,
        neighbours: int,
        seed: int,
        method: str = "minibatch",
    ) -> Direction:
        """Prototypes of the training velocities v = (z_{t+δ} − z_t) / max(ε, ‖·‖)."""
        return cls(cluster(unit(differences), size, seed, method), neighbours)

    def score(self, differences: NDArray[np.floating]) -> NDArray[np.float64]:
        """A score (n,) for differences of embeddings (n, d_z)."""
        return mean_cosine_distance(unit(differences), self.prototypes, self.neighbours)


@dataclass(frozen=True)
class Geometry:
    """Four diagnostics of the eigenvalues λ of the embeddings' covariance, and a verdict."""

    effective_rank_pr: float  # (Σλ)² / Σλ², divided by d_z
    effective_rank_entropy: float  # exp(−Σ p log p) with p = λ/Σλ, divided by d_z
    active_dims: float  # fraction of dimensions that are active
    top1_variance: float  # λ_1 / Σλ
    verdict: Verdict

    @classmethod
    def of(cls, spectra: Sequence[NDArray[np.float64]], active: str) -> Geometry:
        """The mean diagnostics of several encoders, each with its eigenvalues (d_z,)."""
        each = [cls._one(eigenvalues, active) for eigenvalues in spectra]
        if len(each) == 1:
            return each[0]
        names = ("effective_rank_pr", "effective_rank_entropy", "active_dims", "top1_variance")
        means = {name: float(np.mean([getattr(g, name) for g in each])) for name in names}
        verdicts = [g.verdict for g in each]
        return cls(**means, verdict=max(verdicts, key=verdicts.count))

    @classmethod
    def _one(cls, eigenvalues: NDArray[np.float64], active: str) -> Geometry:
        total = float(eigenvalues.sum())
        d_z = len(eigenvalues)
        if total <= 0:
            return cls(0.0, 0.0, 0.0, 1.0, "collapsed")
        share = eigenvalues / total
        positive = share[share > 0]
        entropy = -float(np.sum(positive * np.log(positive)))
        is_active = share > 1 / d_z if active == "share" else eigenvalues > 1e-10
        rank = 1 / float(np.sum(share**2))
        top = float(share.max())
        # One direction that carries nearly all variance leaves nothing for the others to say;
        # a spread over most dimensions is noise without structure.
        verdict: Verdict = "healthy"
        if top > 0.95 or total < 1e-10:
            verdict = "collapsed"
        elif rank > 0.5 * d_z:
            verdict = "isotropic"
        return cls(rank / d_z, float(np.exp(entropy)) / d_z, float(is_active.mean()), top, verdict)
