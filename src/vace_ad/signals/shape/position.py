"""Position: how far a patch's embedding lies from where training embeddings lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.row_buffer import blocked_matmul
from vace_ad.signals.shape.prototypes import cluster, mean_cosine_distance, unit

Embeddings = NDArray[np.floating]  # (n, d_z)
BANK_NEIGHBOURS = 3


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
