"""The channel-aware encoder: five convolutions, each with BatchNorm and ReLU, and a mean.

Weights are plain NumPy arrays, made from a seed without any framework; an engine (see
`vace_ad.engine`) computes with them. Here are their shapes, their initial values, the slow, obvious
way to compute with them, and how BatchNorm takes its statistics from training patches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import workers

Array = NDArray[np.float32]
BATCH_NORM_EPSILON = 1e-5
KERNELS = (7, 1, 5, 3, 3)  # of stages 1 to 5
BLOCK = 16  # patches whose activations stay in the processor's cache
VALUES = 2**21  # activations of the first stage at a time: all of many channels are gigabytes


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


class Moments(NamedTuple):
    """Of some rows; each array is (out,)."""

    n: int
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]  # Σ (x − mean)²

    @classmethod
    def of(cls, block: Array) -> Moments:
        """The moments of the rows of a block (n, P, out)."""
        rows = block.reshape(-1, block.shape[2])
        mean = np.ones(len(rows), np.float32) @ rows / np.float32(len(rows))
        apart = rows - mean
        squares = np.einsum("nc,nc->c", apart, apart)
        return cls(len(rows), mean.astype(np.float64), squares.astype(np.float64))

    @classmethod
    def joined(cls, parts: Sequence[Moments]) -> Moments:
        """The moments of the rows of all of them."""
        counts, means, squares = (np.array(each) for each in zip(*parts, strict=True))
        mean = counts @ means / counts.sum()
        return cls(int(counts.sum()), mean, squares.sum(axis=0) + counts @ (means - mean) ** 2)


def calibrate(encoder: Encoder, patches: Array, blend: float) -> Encoder:
    """BatchNorm statistics of `patches`, layer by layer, blended with their initial values.

    The statistics kept are (1 − α)·(0, 1) + α·data, and each stage hands on what it will hand on
    in scoring, so that the next is calibrated to what it will see.
    """
    blocks = [patches[a : a + BLOCK].transpose(0, 2, 1) for a in range(0, len(patches), BLOCK)]
    first, second, *rest = encoder
    parts: list[Stage] = []
    made: list[Array] = []  # of the second stage, (≤ BLOCK, P, out) each
    with workers() as executor:
        for channels, part, onward in _shares(first, second, patches.shape):
            hidden = _convolved(part, [block[:, :, channels] for block in blocks], executor)
            parts.append(_settled(part, hidden, blend, executor))
            more = _convolved(onward, hidden, executor)
            made = [np.add(a, b, out=a) for a, b in zip(made, more, strict=True)] if made else more
        calibrated = [_joined(first, parts), _settled(second, made, blend, executor)]
        for stage in rest:
            made = _convolved(stage, made, executor)
            calibrated.append(_settled(stage, made, blend, executor))
    return tuple(calibrated)


def _shares(
    first: Stage, second: Stage, shape: tuple[int, ...]
) -> Iterator[tuple[slice, Stage, Stage]]:
    """Some channels at a time, and the parts of the first two stages that are theirs.

    What the second stage makes is the sum over all shares.
    """
    n, n_channels, length = shape
    if first.groups < n_channels:  # every filter sees every channel
        yield slice(n_channels), first, second
        return
    each = len(first.kernel) // n_channels
    size = max(1, VALUES // (n * length * each))
    for a in range(0, n_channels, size):
        b = min(a + size, n_channels)
        own = slice(a * each, b * each)
        norm = first.norm and Norm(*(array[own] for array in vars(first.norm).values()))
        onward = replace(second, kernel=second.kernel[:, own])
        yield slice(a, b), Stage(first.kernel[own], b - a, norm), onward


def _joined(whole: Stage, parts: Sequence[Stage]) -> Stage:
    """The stage with the statistics of its parts."""
    if whole.norm is None:
        return whole
    arrays = zip(*(vars(part.norm).values() for part in parts), strict=True)
    return replace(whole, norm=Norm(*map(np.concatenate, arrays)))


def _convolved(stage: Stage, blocks: Sequence[Array], executor: Executor) -> list[Array]:
    convolution = partial(convolve, kernel=stage.kernel, groups=stage.groups)
    return list(executor.map(convolution, blocks))


def _settled(stage: Stage, made: Sequence[Array], blend: float, executor: Executor) -> Stage:
    """The stage with the statistics of what its convolution made, which turns into its output."""
    if stage.norm is None:
        for block in made:
            np.maximum(block, 0, out=block)
        return stage
    found = Moments.joined(list(executor.map(Moments.of, made)))
    kept = replace(
        stage.norm,
        mean=(blend * found.mean).astype(np.float32),
        var=(1 - blend + blend * found.squares / found.n).astype(np.float32),
    )
    gain = kept.gamma / np.sqrt(kept.var + BATCH_NORM_EPSILON)
    shift = kept.beta - kept.mean * gain

    def hand_on(block: Array) -> None:
        block *= gain
        block += shift
        np.maximum(block, 0, out=block)

    list(executor.map(hand_on, made))
    return replace(stage, norm=kept)
