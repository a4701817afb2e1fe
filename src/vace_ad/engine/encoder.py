"""The channel-aware encoder: five convolutions, each with BatchNorm and ReLU, and a mean.

Weights are plain NumPy arrays, made from a seed without any framework; an engine (see
`vace_ad.engine`) computes with them. Here are their shapes, their initial values and the
calibration of BatchNorm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine.workers import workers

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
    """Same-padded convolution, (n, P, in) → (n, P, out), as one large matrix product a tap.

    The padded patches are laid end to end, so that every tap is one contiguous matrix; rows that
    straddle two patches are computed too and left out at the end.
    """
    n, length, n_in = hidden.shape
    n_out, _, taps = kernel.shape
    pad = taps // 2
    padded = np.pad(hidden, ((0, 0), (pad, pad), (0, 0)))
    if groups == n_in:  # depthwise: each channel with its own filters
        filters = kernel.reshape(groups, n_out // groups, taps).transpose(0, 2, 1)
        windows = sliding_window_view(padded, taps, axis=1)  # (n, P, in, taps)
        made = np.matmul(windows.transpose(2, 0, 1, 3).reshape(groups, -1, taps), filters)
        return np.ascontiguousarray(made.transpose(1, 0, 2)).reshape(n, length, n_out)
    flat = padded.reshape(-1, n_in)
    rows = len(flat) - 2 * pad
    made = np.empty((len(flat), n_out), np.float32)
    np.matmul(flat[:rows], kernel[:, :, 0].T, out=made[:rows])
    for tap in range(1, taps):
        made[:rows] += flat[tap : tap + rows] @ kernel[:, :, tap].T
    return made.reshape(n, length + 2 * pad, n_out)[:, :length]


def calibrate(encoder: Encoder, patches: Array, blend: float) -> Encoder:
    """BatchNorm statistics of `patches`, layer by layer, blended with their initial values.

    The statistics kept are (1 − α)·(0, 1) + α·data, and each stage hands on what it will hand on
    in scoring, so that the next is calibrated to what it will see.
    """
    calibrated = []
    size = 32  # patches whose activations stay in the processor's cache
    blocks = [  # (≤ size, P, in) each
        patches[a : a + size].transpose(0, 2, 1) for a in range(0, len(patches), size)
    ]
    for stage in encoder:
        with workers() as executor:
            convolution = partial(convolve, kernel=stage.kernel, groups=stage.groups)
            blocks = list(executor.map(convolution, blocks))
        if stage.norm is not None:
            mean, var = _moments(blocks)
            kept = replace(
                stage.norm,
                mean=(blend * mean).astype(np.float32),
                var=(1 - blend + blend * var).astype(np.float32),
            )
            stage = replace(stage, norm=kept)
            gain = kept.gamma / np.sqrt(kept.var + BATCH_NORM_EPSILON)
            shift = kept.beta - kept.mean * gain
            for block in blocks:
                block *= gain
                block += shift
        for block in blocks:
            np.maximum(block, 0, out=block)
        calibrated.append(stage)
    return tuple(calibrated)


def _moments(blocks: Sequence[Array]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and population variance of each channel over all patches and rows."""
    n = sum(block.shape[0] * block.shape[1] for block in blocks)
    mean = sum(block.sum(axis=(0, 1), dtype=np.float64) for block in blocks) / n
    centre = mean.astype(np.float32)
    total = np.zeros(len(mean))
    for block in blocks:  # one at a time: memory that is new to the process costs more than sums
        apart = block - centre
        total += np.square(apart, out=apart).sum(axis=(0, 1), dtype=np.float64)
    return mean, total / n


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
