"""The channel-aware encoder: five convolutions, each with BatchNorm and ReLU, and a mean.

Weights are plain NumPy arrays, made from a seed without any framework; an engine (see
`vace_ad.engine`) computes with them. Here are their shapes, their initial values and the
calibration of BatchNorm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


def init_encoder(config: VACEConfig, n_channels: int, rng: np.random.Generator) -> Encoder:
    """A fresh encoder: uniform kernels in ±1/√fan_in, BatchNorm at (0, 1)."""
    w2, w3, w4, w5 = config.widths
    expanded = n_channels * config.channel_expansion
    shapes = [  # (out, in, taps, groups)
        (expanded, n_channels, KERNELS[0], n_channels),
        (w2, expanded, KERNELS[1], 1),
        (w3, w2, KERNELS[2], 1),
        (w4, w3, KERNELS[3], 1),
        (w5, w4, KERNELS[4], 1),
    ]
    if config.encoder == "shared":
        shapes[:2] = [(w2, n_channels, KERNELS[0], 1)]
    stages = []
    for n_out, n_in, taps, groups in shapes:
        bound = 1 / np.sqrt(n_in // groups * taps)
        kernel = rng.uniform(-bound, bound, (n_out, n_in // groups, taps)).astype(np.float32)
        ones, zeros = np.ones(n_out, np.float32), np.zeros(n_out, np.float32)
        norm = Norm(ones, zeros, zeros, ones) if config.batch_norm else None
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
        filters = kernel.reshape(groups, n_out // groups, taps)  # (in, expansion, taps)
        out = np.zeros((n, length, groups, n_out // groups), np.float32)
        for tap in range(taps):
            out += padded[:, tap : tap + length, :, None] * filters[:, :, tap]
        return out.reshape(n, length, n_out)
    flat = padded.reshape(-1, n_in)
    rows = len(flat) - 2 * pad
    made = np.empty((len(flat), n_out), np.float32)
    np.matmul(flat[:rows], kernel[:, :, 0].T, out=made[:rows])
    for tap in range(1, taps):
        made[:rows] += flat[tap : tap + rows] @ kernel[:, :, tap].T
    return made.reshape(n, length + 2 * pad, n_out)[:, :length]


def calibrate(encoder: Encoder, patches: Array, blend: float) -> Encoder:
    """BatchNorm statistics of `patches`, layer by layer, blended with their initial values.

    Each stage is normalised by the batch itself on the way, as in training, and the statistics
    kept are (1 − α)·(0, 1) + α·data. Below α = 1 deeper stages then see smaller inputs than their
    statistics expect, and ReLU clips more.
    """
    calibrated = []
    hidden = patches.transpose(0, 2, 1)  # (n, P, in)
    for stage in encoder:
        hidden = convolve(hidden, stage.kernel, stage.groups)
        if stage.norm is not None:
            mean = hidden.mean(axis=(0, 1), dtype=np.float64)  # (out,)
            var = hidden.var(axis=(0, 1), dtype=np.float64)
            kept = replace(
                stage.norm,
                mean=(blend * mean).astype(np.float32),
                var=(1 - blend + blend * var).astype(np.float32),
            )
            calibrated.append(replace(stage, norm=kept))
            gain = stage.norm.gamma / np.sqrt(var + BATCH_NORM_EPSILON)
            shift = stage.norm.beta - mean * gain
            hidden *= gain.astype(np.float32)
            hidden += shift.astype(np.float32)
        else:
            calibrated.append(stage)
        np.maximum(hidden, 0, out=hidden)
    return tuple(calibrated)


def encode(encoder: Encoder, patches: Array) -> Array:
    """Embeddings (n, d_z) of normalised patches (n, n_channels, P)."""
    hidden = patches.transpose(0, 2, 1)  # (n, P, in)
    for stage in encoder:
        kernel, bias = stage.folded()
        hidden = convolve(hidden, kernel, stage.groups)
        hidden += bias
        np.maximum(hidden, 0, out=hidden)
    return np.asarray(hidden.mean(axis=1))


def flop_per_patch(encoders: Sequence[Encoder], patch_length: int) -> int:
    """Floating-point operations of one patch, two for each multiply-add."""
    return sum(2 * stage.kernel.size * patch_length for encoder in encoders for stage in encoder)
