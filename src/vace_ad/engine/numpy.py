"""Embeddings by NumPy's matrix products: slow, dependable, the oracle of the other engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine.encoder import Encoder, encode


class NumpyEngine:
    """Plain float32 matrix products."""

    name = "numpy float32"
    batch = 64
    callers = 1

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        self._encoders = encoders

    def embed(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, n_channels, P) to (n, n_encoders, d_z), one patch at a time.

        In one product for all, a patch's last bits would depend on its place among the others.
        """
        return np.stack(
            [
                np.concatenate([encode(encoder, patch[None]) for encoder in self._encoders])
                for patch in patches
            ]
        )
