"""BatchNorm statistics of an encoder from training patches, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine.encoder import BATCH_NORM_EPSILON, Array, Encoder, Norm, Stage, convolve
from vace_ad.engine.trajectory import workers

BLOCK = 16  # patches whose activations stay in the processor's cache
VALUES = 2**21  # activations of the first stage at a time: all of many channels are gigabytes


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
