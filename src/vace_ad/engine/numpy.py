"""Embeddings by NumPy's matrix products: in every install, and the oracle of the other engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine import workers
from vace_ad.engine.encoder import Encoder, encode_folded

SIZE = 8  # patches a block: few calls, and all of them in cache


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
        """(n, n_channels, P) to (n, n_encoders, d_z); each patch's bits are its own."""
        blocks = [patches[a : a + SIZE] for a in range(0, len(patches), SIZE)]
        if len(blocks) == 1:  # a live row
            return self._block(patches)
        with workers() as executor:
            return np.concatenate(list(executor.map(self._block, blocks)))

    def _block(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        with np.errstate(all="ignore"):  # threads have one of their own; NaN is seen later
            found = [encode_folded(stages, patches) for stages in self._encoders]
        return np.stack(found, axis=1)
