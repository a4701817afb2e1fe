"""Embeddings by NumPy's matrix products: slow, dependable, the oracle of the other engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine.encoder import Encoder, encode_folded
from vace_ad.engine.workers import workers


class NumpyEngine:
    """Plain float32 matrix products."""

    name = "numpy float32"
    batch = 256
    callers = 1

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        self._encoders = [
            [(*stage.folded(), stage.groups) for stage in encoder] for encoder in encoders
        ]

    def embed(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, n_channels, P) to (n, n_encoders, d_z), one patch at a time.

        In one product for all, a patch's last bits would depend on its place among the others.
        """

        def one(patch: NDArray[np.float32]) -> NDArray[np.float32]:
            with np.errstate(all="ignore"):  # threads have one of their own; NaN is seen later
                found = [encode_folded(stages, patch[None]) for stages in self._encoders]
            return np.concatenate(found)

        with workers() as executor:
            return np.stack(list(executor.map(one, patches)))
