"""The encoder's training pass by hand: batch statistics forward, gradients backward.

The arithmetic is that of the plain module (convolution, BatchNorm over the batch, ReLU, mean over
time) and its chain rule. What makes it quick:

- a patch that occurs several times in a batch is computed once and counted as often as it occurs;
- work goes block by block of few patches, so that what one matrix product wrote the next step
  finds in cache, and into buffers that stay;
- blocks are dealt to a fixed number of lanes, which threads work off with one BLAS thread each.
  A lane adds up its gradients in order, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vace_ad.method.convolution import Rows, convolution_of
from vace_ad.method.encoder import BATCH_NORM_EPSILON, Encoder

Array = NDArray[np.float32]
Exact = NDArray[np.float64]
Result = TypeVar("Result")
BLOCK = 16  # patches a block
LANES = 8  # sums of gradients that are kept apart


class Block(NamedTuple):
    """Patches [start, end) of a batch, each occurring `times` times."""

    start: int
    end: int
    times: int


class Statistics(NamedTuple):
    """What BatchNorm of one stage measured in a batch; each array is (out,)."""

    mean: Exact
    var: Exact  # divided by n
    unbiased: Exact  # divided by n − 1


class Gradients(NamedTuple):
    """The gradients of one stage."""

    kernel: Array  # (out, in / groups, taps)
    gamma: Array | None  # (out,); None without BatchNorm
    beta: Array | None


class TrainingPass:
    """Forward and backward through encoders of one shape, batch after batch."""

    def __init__(
        self,
        encoder: Encoder,
        patch_length: int,
        capacity: int,  # most distinct patches in a batch
        workers: Executor,
    ) -> None:
        self._length = patch_length
        self._margin = max(stage.kernel.shape[2] // 2 for stage in encoder)
        self._pitch = patch_length + self._margin  # rows from one patch to the next
        self._widths = [len(stage.kernel) for stage in encoder]
        rows = capacity * self._pitch
        self._outputs = [np.empty((rows, width), np.float32) for width in self._widths]
        self._slopes = [np.empty(rows * max(self._widths), np.float32) for _ in range(2)]
        self._workers = workers
        self._local = threading.local()

    def forward(self, encoder: Encoder, patches: Array, counts: NDArray[np.intp]) -> Array:
        """Embeddings (n, d_z) of distinct patches (n, n_channels, P), sorted by their counts."""
        self._encoder, self._patches = encoder, patches
        self._layers = [convolution_of(stage) for stage in encoder]
        self._blocks = _blocks(counts)
        self._n = int(counts.sum()) * self._length  # rows that BatchNorm counts
        self.statistics: list[Statistics] = []
        self._maps: list[tuple[Array, Array]] = []  # gain and shift of each stage, (pitch, out)
        for stage in range(len(encoder)):
            moments = self._map(lambda block, i=stage: self._convolve(i, block), self._blocks)
            self._measure(stage, moments)
        return np.concatenate(self._map(self._pool, self._blocks))

    def backward(self, slope: Array) -> list[Gradients]:
        """Gradients of every stage from the gradient (n, d_z) in the embeddings just made.

        The gradient in a distinct patch's embedding is the sum over its occurrences.
        """
        gradients: list[Gradients] = []
        lanes = [self._blocks[k::LANES] for k in range(LANES)]
        self._embedding_slope = slope / np.float32(self._length)
        sums = self._map(self._unpool, self._blocks)
        for stage in range(len(self._encoder) - 1, -1, -1):
            beta, gamma = self._differentiate_norm(stage, sums)
            done = self._map(lambda lane, i=stage: self._back(i, lane), lanes)
            total = np.sum([lane_total for lane_total, _ in done], axis=0)
            sums = [part for _, parts in done for part in parts]
            plain = self._encoder[stage].norm is None
            gradients.append(
                Gradients(
                    self._layers[stage].to_kernel(total),
                    None if plain else gamma.astype(np.float32),
                    None if plain else beta.astype(np.float32),
                )
            )
        return gradients[::-1]

    # ------------------------------------------------------- forward, in parts

    def _convolve(self, stage: int, block: Block) -> tuple[Exact, Exact]:
        """Compute the outputs of a stage; their mean and the squares about it, (out,)."""
        scratch = self._scratch
        out = self._part(self._outputs[stage], block)
        self._enter(stage, block, scratch.inputs)
        self._layers[stage].forward(scratch.inputs, out)
        inside = self._by_patch(out)
        mean = _time_sums(inside).mean(axis=0, dtype=np.float64) / self._length
        centred = self._by_patch(scratch.other(out.shape))
        np.subtract(inside, mean.astype(np.float32), out=centred)
        squares = np.einsum("npc,npc->nc", centred, centred).sum(axis=0, dtype=np.float64)
        return mean, squares

    def _enter(self, stage: int, block: Block, rows: Rows) -> None:
        """Fill `rows` with the inputs of a stage: patches, or the stage before after ReLU."""
        if stage == 0:
            patches = self._patches[block.start : block.end]
            inside = rows.take(len(patches) * self._pitch, patches.shape[1])
            inside[:] = 0
            self._by_patch(inside)[:] = patches.transpose(0, 2, 1)
            return
        before = self._part(self._outputs[stage - 1], block)
        gain, shift = self._maps[stage - 1]
        hidden = rows.take(*before.shape).reshape(-1, gain.size)  # (n, pitch · in)
        np.multiply(before.reshape(hidden.shape), gain.ravel(), out=hidden)
        hidden += shift.ravel()
        np.maximum(hidden, np.zeros(gain.size, np.float32), out=hidden)

    def _measure(self, stage: int, moments: Sequence[tuple[Exact, Exact]]) -> None:
        """BatchNorm's statistics from those of the blocks, and the map it then is."""
        means, squares = (np.array(part) for part in zip(*moments, strict=True))
        counts = np.array([block.times for block in self._blocks], np.float64)
        rows = counts * [(block.end - block.start) * self._length for block in self._blocks]
        mean = rows @ means / self._n
        total = counts @ squares + rows @ (means - mean) ** 2
        self.statistics.append(Statistics(mean, total / self._n, total / max(1, self._n - 1)))
        norm = self._encoder[stage].norm
        gain, shift = np.ones_like(mean), np.zeros_like(mean)
        if norm is not None:
            gain = norm.gamma / np.sqrt(total / self._n + BATCH_NORM_EPSILON)
            shift = norm.beta - mean * gain
        self._maps.append((self._tiled(gain), self._tiled(shift)))

    def _pool(self, block: Block) -> Array:
        """The embeddings of a block, (n, d_z)."""
        rows = self._scratch.inputs
        self._enter(len(self._encoder), block, rows)
        return np.asarray(_time_sums(self._by_patch(rows.inside)) / np.float32(self._length))

    # ------------------------------------------------------ backward, in parts

    def _unpool(self, block: Block) -> tuple[Exact, Exact]:
        """The slope of the mean over time, behind the last ReLU."""
        last = len(self._encoder) - 1
        out = self._slope_part(last, block)
        out[:] = 0
        self._by_patch(out)[:] = self._embedding_slope[block.start : block.end, None]
        self._enter(last + 1, block, self._scratch.inputs)
        return self._through_relu(last, block, out)

    def _through_relu(self, stage: int, block: Block, slope: Array) -> tuple[Exact, Exact]:
        """Stop the slope where ReLU did; Σ slope and Σ slope · (y − mean), (out,).

        Scratch holds what the ReLU let through, zero between patches.
        """
        scratch = self._scratch
        slope *= scratch.inputs.inside > 0
        out = self._by_patch(self._part(self._outputs[stage], block))
        centred = self._by_patch(scratch.other(slope.shape))
        np.subtract(out, self.statistics[stage].mean.astype(np.float32), out=centred)
        inside = self._by_patch(slope)
        products = np.einsum("npc,npc->nc", inside, centred)
        return (
            _time_sums(inside).sum(axis=0, dtype=np.float64),
            products.sum(axis=0, dtype=np.float64),
        )

    def _differentiate_norm(
        self, stage: int, sums: Sequence[tuple[Exact, Exact]]
    ) -> tuple[Exact, Exact]:
        """Gradients in β and γ, and the map of slopes through BatchNorm of this stage.

        Before BatchNorm the slope is gain · (g − Σg/n − x̂ · Σ(g·x̂)/n) with x̂ the normalised
        output; an output that occurs m times takes the last two terms m times.
        """
        sum_slope, sum_product = (np.sum(part, axis=0) for part in zip(*sums, strict=True))
        mean, var, _ = self.statistics[stage]
        gain = self._maps[stage][0][0].astype(np.float64)
        self._linear, self._constant = np.zeros_like(mean), np.zeros_like(mean)
        inverse = 1 / np.sqrt(var + BATCH_NORM_EPSILON)
        if self._encoder[stage].norm is not None:
            self._linear = -gain * inverse**2 * sum_product / self._n
            self._constant = -gain * sum_slope / self._n - self._linear * mean
        return sum_slope, sum_product * inverse

    def _back(self, stage: int, lane: Sequence[Block]) -> tuple[Array, list[tuple[Exact, Exact]]]:
        """A lane's gradient in the stage's matrix; slopes and their sums one stage earlier."""
        scratch, layer = self._scratch, self._layers[stage]
        total = np.zeros_like(layer.matrix)
        sums = []
        gain = self._maps[stage][0].ravel()
        for block in lane:
            linear = self._tiled(block.times * self._linear).ravel()
            constant = self._tiled(block.times * self._constant).ravel()
            behind = self._slope_part(stage, block).reshape(-1, gain.size)
            out = self._part(self._outputs[stage], block)
            slope = scratch.slope.take(*out.shape).reshape(behind.shape)
            np.multiply(out.reshape(behind.shape), linear, out=slope)
            slope += constant
            behind *= gain
            slope += behind
            self._enter(stage, block, scratch.inputs)
            layer.to_matrix(scratch.inputs, scratch.slope, total)
            if stage > 0:
                earlier = self._slope_part(stage - 1, block)
                layer.to_inputs(scratch.slope, earlier)
                sums.append(self._through_relu(stage - 1, block, earlier))
        return total, sums

    # ------------------------------------------------------------------ layout

    def _map(self, work: Callable[..., Result], items: Sequence[object]) -> list[Result]:
        return list(self._workers.map(work, items))

    def _part(self, rows: Array, block: Block) -> Array:
        return rows[block.start * self._pitch : block.end * self._pitch]

    def _slope_part(self, stage: int, block: Block) -> Array:
        """Where the slopes behind a stage lie; two stages in a row lie apart."""
        width = self._widths[stage]
        flat = self._slopes[stage % 2]
        return self._part(flat[: len(flat) // width * width].reshape(-1, width), block)

    def _by_patch(self, rows: Array) -> Array:
        """(n · pitch, width) seen as (n, P, width), without the rows between patches."""
        return rows.reshape(-1, self._pitch, rows.shape[1])[:, : self._length]

    def _tiled(self, vector: Exact) -> Array:
        """A value for each channel as rows of a patch, (pitch, out), zero between patches."""
        rows = np.zeros((self._pitch, len(vector)), np.float32)
        rows[: self._length] = vector
        return rows

    @property
    def _scratch(self) -> _Scratch:
        """This thread's buffers."""
        if not hasattr(self._local, "scratch"):
            width = max(*self._widths, self._patches.shape[1])
            self._local.scratch = _Scratch(BLOCK * self._pitch, width, self._margin)
        scratch: _Scratch = self._local.scratch
        return scratch


class _Scratch:
    """Buffers for the rows of one block."""

    def __init__(self, rows: int, widest: int, margin: int) -> None:
        self.inputs, self.slope = Rows(rows, widest, margin), Rows(rows, widest, margin)
        self._other = np.empty(rows * widest, np.float32)

    def other(self, shape: tuple[int, ...]) -> Array:
        return self._other[: shape[0] * shape[1]].reshape(shape)


def _blocks(counts: NDArray[np.intp]) -> list[Block]:
    """Blocks of patches with equal counts; `counts` is sorted."""
    borders = np.flatnonzero(np.diff(counts, prepend=0, append=0))
    return [
        Block(a, min(a + BLOCK, end), int(counts[a]))
        for start, end in pairwise(borders.tolist())
        for a in range(start, end, BLOCK)
    ]


def _time_sums(inside: Array) -> Array:
    """(n, P, out) summed over time, (n, out), by a product with ones."""
    ones = np.ones((1, inside.shape[1]), np.float32)
    return np.asarray((ones @ inside)[:, 0])
