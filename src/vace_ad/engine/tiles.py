"""Embeddings by NumPy's matrix products alone, with Winograd's convolutions.

For the wide encoders of the paper this is the quickest way in float32; with narrow ones OpenVINO
is quicker. BLAS rounds a row differently by where it stands in a matrix, so the last bits of an
embedding depend on which patches come with it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from vace_ad.method.backprop import BLOCK, convolution
from vace_ad.method.convolution import PHASES, Layout, Workspace, windows
from vace_ad.method.encoder import Encoder
from vace_ad.method.workers import thread_count

Array = NDArray[np.float32]


class TilesEngine:
    """Blocks of patches, each worked off by one thread."""

    name = "numpy float32"
    batch = 16 * BLOCK

    def __init__(self, encoders: Sequence[Encoder], patch_length: int) -> None:
        self._layout = Layout(patch_length)
        self._encoders = [_Folded(encoder, self._layout) for encoder in encoders]
        self._taps = encoders[0][0].kernel.shape[2]
        self._local = threading.local()
        self._threads = thread_count()
        self._blas = ThreadpoolController().select(user_api="blas")

    def embed(self, patches: Array) -> Array:
        """(n, n_channels, P) to (n, n_encoders, d_z)."""
        blocks = [patches[a : a + BLOCK] for a in range(0, len(patches), BLOCK)]
        with self._blas.limit(limits=1), ThreadPoolExecutor(self._threads, "vace") as executor:
            return np.concatenate(list(executor.map(self._embed, blocks)))

    def _embed(self, block: Array) -> Array:
        if not hasattr(self._local, "space"):
            self._local.space = Workspace()
        space: Workspace = self._local.space
        seen = windows(block, self._taps, self._layout, space)
        return np.stack([encoder.embed(seen, len(block), space) for encoder in self._encoders], 1)


class _Folded:
    """One encoder with BatchNorm folded into its convolutions."""

    def __init__(self, encoder: Encoder, layout: Layout) -> None:
        folded = [stage.folded() for stage in encoder]
        self._layers = [
            convolution(kernel, stage.groups, first=i == 0)
            for i, (stage, (kernel, _)) in enumerate(zip(encoder, folded, strict=True))
        ]
        self._biases = [layout.along(bias) for _, bias in folded]
        self._layout = layout

    def embed(self, inputs: Array, n: int, space: Workspace) -> Array:
        """The embeddings (n, d_z) of the windows of n patches."""
        for i, (layer, bias) in enumerate(zip(self._layers, self._biases, strict=True)):
            last = i + 1 == len(self._layers)
            slots, lead = (PHASES, 0) if last else self._room(i + 1)
            width = bias.shape[2] // self._layout.tiles
            made = space.array(f"stage {i % 2}", slots, n * self._layout.tiles, width)
            hidden = made[lead : lead + PHASES]
            layer.forward(inputs, hidden, space)
            by_patch = hidden.reshape(PHASES, n, -1)
            by_patch += bias
            np.maximum(by_patch, np.zeros(bias.shape[2], np.float32), out=by_patch)
            self._layout.clear(hidden)
            inputs = made
        by_tile = inputs.reshape(PHASES, n, self._layout.tiles, -1)
        return np.asarray(by_tile.sum(axis=(0, 2)) / np.float32(self._layout.length))

    def _room(self, i: int) -> tuple[int, int]:
        return self._layers[i].slots, self._layers[i].lead
