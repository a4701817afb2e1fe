"""Direction: how unfamiliar a patch's direction of motion is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.shape.prototypes import cluster, mean_cosine_distance, unit


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
