"""The channel-aware encoder: five convolutions, each with BatchNorm and ReLU, and a mean.

Weights are plain NumPy arrays, made from a seed without any framework; an engine (see
`vace_ad.engine`) computes with them. Here are their shapes, their initial values and the slow,
obvious way to compute with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig

Array = NDArray[np.float32]
BATCH_NORM_EPSILON = 1e-5
KERNELS = (7, 1, 5, 3, 3)  # of stages 1 to 5


@dataclass(frozen=True)
class Norm:
    """BatchNorm of one stage; every array is (out,)."""

    gamma: Array
    beta: Array
    mean: Array
    var: Array


@dataclass(frozen=True)
class Stage:
    """A convolution with same padding and no bias, BatchNorm or none, ReLU."""

    kernel: Array  # (out, in / groups, taps)
    groups: int
    norm: Norm | None

    def folded(self) -> tuple[Array, Array]:
        """Kernel and bias of the one convolution that equals convolution and BatchNorm."""
        if self.norm is None:
            return self.kernel, np.zeros(len(self.kernel), np.float32)
        norm = {name: value.astype(np.float64) for name, value in vars(self.norm).items()}
        gain = norm["gamma"] / np.sqrt(norm["var"] + BATCH_NORM_EPSILON)
        bias = norm["beta"] - norm["mean"] * gain
        kernel = self.kernel * gain[:, None, None]
        return kernel.astype(np.float32), bias.astype(np.float32)


Encoder = tuple[Stage, ...]


class StageShape(NamedTuple):
    """The sizes of one convolution."""

    n_out: int
    n_in: int  # a group
    taps: int
    groups: int


def stage_shapes(config: VACEConfig, n_channels: int) -> list[StageShape]:
    """The five convolutions, or four where one shared kernel stands for the first two."""
    w2, w3, w4, w5 = config.reproduction.widths
    expanded = n_channels * config.reproduction.channel_expansion
    first = [
        StageShape(expanded, 1, KERNELS[0], n_channels),
        StageShape(w2, expanded, KERNELS[1], 1),
    ]
    if config.reproduction.encoder == "shared":
        first = [StageShape(w2, n_channels, KERNELS[0], 1)]
    return [
        *first,
        StageShape(w3, w2, KERNELS[2], 1),
        StageShape(w4, w3, KERNELS[3], 1),
        StageShape(w5, w4, KERNELS[4], 1),
    ]


def init_encoder(config: VACEConfig, n_channels: int, rng: np.random.Generator) -> Encoder:
    """A fresh encoder: uniform kernels in ±1/√fan_in, BatchNorm at (0, 1)."""
    return init_stages(stage_shapes(config, n_channels), rng, config.reproduction.batch_norm)


def init_stages(
    shapes: Sequence[StageShape], rng: np.random.Generator, batch_norm: bool = True
) -> Encoder:
    """Fresh convolutions of these shapes."""
    stages = []
    for n_out, n_in, taps, groups in shapes:
        bound = 1 / np.sqrt(n_in * taps)
        kernel = rng.uniform(-bound, bound, (n_out, n_in, taps)).astype(np.float32)
        ones, zeros = np.ones(n_out, np.float32), np.zeros(n_out, np.float32)
        norm = Norm(ones, zeros, zeros, ones) if batch_norm else None
        stages.append(Stage(kernel, groups, norm))
    return tuple(stages)


def convolve(hidden: Array, kernel: Array, groups: int) -> Array:
    """Same-padded convolution, (n, P, in) → (n, P, out), as a matrix product for each patch.

    The rows of a padded patch follow each other in memory, so the rows under a kernel are one run
    of values, and all such runs are the rows of a matrix. `np.matmul` takes the patches one after
    the other, so a patch's bits do not depend on how many come with it.
    """
    n, length, n_in = hidden.shape
    n_out, _, taps = kernel.shape
    pad = taps // 2
    if groups == n_in:  # depthwise: each channel with its own filters
        return _depthwise(hidden, kernel.reshape(groups, n_out // groups, taps))
    padded = np.ascontiguousarray(hidden)
    if pad:
        padded = np.zeros((n, length + 2 * pad, n_in), np.float32)
        padded[:, pad : pad + length] = hidden
    runs = np.ndarray((n, length, taps * n_in), np.float32, padded, strides=padded.strides)
    matrix = kernel.transpose(2, 1, 0).reshape(-1, n_out)  # (taps · in, out)
    return np.asarray(np.matmul(runs.copy() if taps > 1 else runs, matrix))


def _depthwise(hidden: Array, filters: Array) -> Array:
    """The same for filters (in, out / in, taps): a small product for each channel."""
    n, length, n_in = hidden.shape
    _, expansion, taps = filters.shape
    padded = np.zeros((n, n_in, length + taps - 1), np.float32)
    padded[:, :, taps // 2 : taps // 2 + length] = hidden.transpose(0, 2, 1)
    windows = np.empty((n, n_in, taps, length), np.float32)
    for tap in range(taps):
        windows[:, :, tap] = padded[:, :, tap : tap + length]
    made = np.empty((n, length, n_in, expansion), np.float32)
    np.matmul(windows.swapaxes(2, 3), filters.swapaxes(1, 2), out=made.swapaxes(1, 2))
    return made.reshape(n, length, -1)


def encode(encoder: Encoder, patches: Array) -> Array:
    """Embeddings (n, d_z) of normalised patches (n, n_channels, P)."""
    return encode_folded([(*stage.folded(), stage.groups) for stage in encoder], patches)


def encode_folded(stages: Sequence[tuple[Array, Array, int]], patches: Array) -> Array:
    """The same from kernel, bias and groups of each stage, for those who encode many times."""
    hidden = patches.transpose(0, 2, 1)  # (n, P, in)
    for kernel, bias, groups in stages:
        hidden = convolve(hidden, kernel, groups)
        hidden += bias
        np.maximum(hidden, 0, out=hidden)
    return np.asarray(hidden.mean(axis=1))


def flop_per_patch(encoders: Sequence[Encoder], patch_length: int) -> int:
    """Floating-point operations of one patch, two for each multiply-add."""
    return sum(2 * stage.kernel.size * patch_length for encoder in encoders for stage in encoder)
