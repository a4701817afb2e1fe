"""Who computes embeddings: OpenVINO, torch or NumPy, behind one small interface."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.method.encoder import Encoder


class Engine(Protocol):
    """Weights in, patches in, embeddings out."""

    name: str  # what was chosen, for people
    batch: int  # patches a call is quickest with
    callers: int  # threads that may call at a time and gain by it

    def embed(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, n_channels, P) normalised patches to (n, n_encoders, d_z) embeddings."""
        ...


def make_engine(encoders: Sequence[Encoder], n_channels: int, config: VACEConfig) -> Engine:
    """The engine of the config; `auto` is OpenVINO, else NumPy, unless a GPU is asked for."""
    choice = config.engine
    if choice == "auto":
        has_openvino = find_spec("openvino") is not None
        choice = "torch" if config.device != "cpu" else "openvino" if has_openvino else "numpy"
    if choice == "openvino":
        from vace_ad.engine.openvino import OpenVINOEngine

        return OpenVINOEngine(encoders, n_channels, config.patch_length, config.precision)
    if choice == "torch":
        from vace_ad.engine.torch import TorchEngine

        return TorchEngine(encoders, config.device, config.precision)
    from vace_ad.engine.numpy import NumpyEngine

    return NumpyEngine(encoders)
