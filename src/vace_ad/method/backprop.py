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
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from vace_ad.method.convolution import (
    PHASES,
    Convolution,
    First,
    Layout,
    Pointwise,
    Workspace,
    windows,
)
from vace_ad.method.encoder import BATCH_NORM_EPSILON, Encoder
from vace_ad.method.winograd import Winograd

Array = NDArray[np.float32]
Exact = NDArray[np.float64]
Item = TypeVar("Item")
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


class Map(NamedTuple):
    """BatchNorm and ReLU of one stage, y ↦ max(gain · y + shift, 0)."""

    gain: Array  # (out,)
    rows: tuple[Array, Array, Array]  # gain, shift and 0 along a patch, each (PHASES, 1, …)

    @classmethod
    def of(cls, gain: Exact, shift: Exact, layout: Layout) -> Map:
        """The map of these values, (out,) each."""
        along = layout.along(gain), layout.along(shift), layout.along(np.zeros_like(gain))
        return cls(gain.astype(np.float32), along)


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
        self._layout = Layout(patch_length)
        self._widths = [len(stage.kernel) for stage in encoder]
        rows = capacity * self._layout.rows
        self._outputs = [np.empty(rows * width, np.float32) for width in self._widths]
        self._slopes = [np.empty(rows * max(self._widths), np.float32) for _ in range(2)]
        self._workers = workers
        self._local = threading.local()

    def forward(self, encoder: Encoder, patches: Array, counts: NDArray[np.intp]) -> Array:
        """Embeddings (n, d_z) of distinct patches (n, n_channels, P), sorted by their counts."""
        self._encoder, self._patches = encoder, patches
        self._blocks = _blocks(counts)
        self._n = int(counts.sum()) * self._layout.length  # rows that BatchNorm counts
        self.statistics: list[Statistics] = []
        self._means: list[Array] = []  # along a patch
        self._maps: list[Map] = []
        for i in range(len(encoder)):
            layer = convolution(encoder, i)
            self._measure(i, self._map(partial(self._convolve, i, layer), self._blocks))
        return np.concatenate(self._map(self._pool, self._blocks))

    def backward(self, slope: Array) -> list[Gradients]:
        """Gradients of every stage from the gradient (n, d_z) in the embeddings just made.

        The gradient in a distinct patch's embedding is the sum over its occurrences.
        """
        gradients: list[Gradients] = []
        lanes = [self._blocks[k::LANES] for k in range(LANES)]
        self._embedding_slope = slope / np.float32(self._layout.length)
        sums = self._map(self._unpool, self._blocks)
        for i in range(len(self._encoder) - 1, -1, -1):
            gain = self._maps[i].gain[:, None, None]
            beta, gamma, taken = self._differentiate_norm(i, sums)
            # Slopes carry BatchNorm's gain no further than here: the kernel takes it.
            layer = convolution(self._encoder, i, gain)
            done = self._map(partial(self._back, i, layer, taken), lanes)
            kernel = layer.to_kernel(np.sum([total for total, _ in done], axis=0)) * gain
            sums = [part for _, parts in done for part in parts]
            plain = self._encoder[i].norm is None
            gradients.append(Gradients(kernel, None if plain else gamma, None if plain else beta))
        return gradients[::-1]

    # ------------------------------------------------------- forward, in parts

    def _convolve(self, i: int, layer: Convolution, block: Block) -> tuple[Exact, Exact]:
        """Compute the outputs of a stage; their mean and the squares about it, (out,)."""
        out = self._output(i, block)
        layer.forward(self._enter(i, layer, block), out, self._space)
        self._layout.clear(out)
        mean = _sums(out) / ((block.end - block.start) * self._layout.length)
        centred = self._centred(out, self._layout.along(mean))
        squares = np.einsum("prc,prc->pc", centred, centred).sum(axis=0, dtype=np.float64)
        return mean, squares

    def _enter(self, i: int, layer: Convolution, block: Block) -> Array:
        """The inputs of a stage: windows of patches, or the stage before after ReLU."""
        if i == 0:
            taps = self._encoder[0].kernel.shape[2]
            patches = self._patches[block.start : block.end]
            return windows(patches, taps, self._layout, self._space)
        before = self._output(i - 1, block)
        slots = self._space.array("inputs", layer.slots, *before.shape[1:])
        self._through_norm(i - 1, before, slots[layer.lead : layer.lead + PHASES])
        return slots

    def _through_norm(self, i: int, out: Array, hidden: Array) -> None:
        """BatchNorm and ReLU of a stage, zero between patches."""
        gain, shift, zero = self._maps[i].rows
        by_patch = hidden.reshape(PHASES, -1, gain.shape[2])
        np.multiply(out.reshape(by_patch.shape), gain, out=by_patch)
        by_patch += shift
        np.maximum(by_patch, zero, out=by_patch)

    def _measure(self, i: int, moments: Sequence[tuple[Exact, Exact]]) -> None:
        """BatchNorm's statistics from those of the blocks, and the map it then is."""
        means, squares = (np.array(part) for part in zip(*moments, strict=True))
        times = np.array([block.times for block in self._blocks], np.float64)
        rows = times * [(b.end - b.start) * self._layout.length for b in self._blocks]
        mean = rows @ means / self._n
        total = times @ squares + rows @ (means - mean) ** 2
        self.statistics.append(Statistics(mean, total / self._n, total / max(1, self._n - 1)))
        self._means.append(self._layout.along(mean))
        norm = self._encoder[i].norm
        gain, shift = np.ones_like(mean), np.zeros_like(mean)
        if norm is not None:
            gain = norm.gamma / np.sqrt(total / self._n + BATCH_NORM_EPSILON)
            shift = norm.beta - mean * gain
        self._maps.append(Map.of(gain, shift, self._layout))

    def _pool(self, block: Block) -> Array:
        """The embeddings of a block, (n, d_z)."""
        hidden = self._last_hidden(block)
        by_patch = hidden.reshape(PHASES, block.end - block.start, -1, hidden.shape[2])
        return np.asarray(by_patch.sum(axis=(0, 2)) / np.float32(self._layout.length))

    def _last_hidden(self, block: Block) -> Array:
        last = self._output(len(self._encoder) - 1, block)
        hidden = self._space.array("inputs", *last.shape)
        self._through_norm(len(self._encoder) - 1, last, hidden)
        return hidden

    # ------------------------------------------------------ backward, in parts

    def _unpool(self, block: Block) -> tuple[Exact, Exact]:
        """The slope of the mean over time, behind the last ReLU."""
        hidden = self._last_hidden(block)
        slope = self._space.array("to inputs", *hidden.shape)
        by_patch = slope.reshape(PHASES, block.end - block.start, -1, hidden.shape[2])
        by_patch[:] = self._embedding_slope[block.start : block.end, None]
        return self._through_relu(len(self._encoder) - 1, block, hidden, slope)

    def _through_relu(
        self, i: int, block: Block, hidden: Array, slope: Array
    ) -> tuple[Exact, Exact]:
        """Keep the slope where ReLU let `hidden` through; Σ slope and Σ slope · (y − mean)."""
        kept = self._slope(i, block)
        np.multiply(slope, hidden > 0, out=kept)  # nothing gets through between patches
        centred = self._centred(self._output(i, block), self._means[i])
        products = np.einsum("prc,prc->pc", kept, centred)
        return _sums(kept), products.sum(axis=0, dtype=np.float64)

    def _differentiate_norm(
        self, i: int, sums: Sequence[tuple[Exact, Exact]]
    ) -> tuple[Array, Array, tuple[Exact, Exact]]:
        """Gradients in β and γ, and what BatchNorm takes from slopes that go through it.

        Before BatchNorm the slope is gain · (g − Σg/n − x̂ · Σ(g·x̂)/n) with x̂ the normalised
        output; an output that occurs m times takes the last two terms m times.
        """
        sum_slope, sum_product = (np.sum(part, axis=0) for part in zip(*sums, strict=True))
        mean, var, _ = self.statistics[i]
        linear, constant = np.zeros_like(mean), np.zeros_like(mean)
        if self._encoder[i].norm is not None:
            linear = -sum_product / (var + BATCH_NORM_EPSILON) / self._n
            constant = -sum_slope / self._n - linear * mean
        gamma = sum_product / np.sqrt(var + BATCH_NORM_EPSILON)
        return sum_slope.astype(np.float32), gamma.astype(np.float32), (linear, constant)

    def _back(
        self, i: int, layer: Convolution, taken: tuple[Exact, Exact], lane: Sequence[Block]
    ) -> tuple[Array, list[tuple[Exact, Exact]]]:
        """A lane's gradient in the layer's matrix; slopes and their sums one stage earlier."""
        space = self._space
        total = np.zeros_like(layer.matrix)
        sums = []
        every = {block.times for block in lane}
        rows = {m: [self._layout.along(m * part) for part in taken] for m in every}
        for block in lane:
            linear, constant = rows[block.times]
            out = self._output(i, block)
            slope = space.array("slope", *out.shape)
            by_patch = slope.reshape(PHASES, -1, linear.shape[2])
            np.multiply(out.reshape(by_patch.shape), linear, out=by_patch)
            by_patch += constant
            slope += self._slope(i, block)
            inputs = self._enter(i, layer, block)
            layer.to_matrix(inputs, slope, total, space)
            if i > 0:
                hidden = inputs[layer.lead : layer.lead + PHASES]
                earlier = layer.to_inputs(slope, space)
                sums.append(self._through_relu(i - 1, block, hidden, earlier))
        return total, sums

    # ----------------------------------------------------------------- storage

    def _map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        return list(self._workers.map(work, items))

    def _output(self, i: int, block: Block) -> Array:
        """Where the outputs of a stage lie, (PHASES, rows, out)."""
        return self._part(self._outputs[i], block, self._widths[i])

    def _slope(self, i: int, block: Block) -> Array:
        """Where the slopes behind a stage lie; those of two stages in a row lie apart."""
        return self._part(self._slopes[i % 2], block, self._widths[i])

    def _part(self, flat: Array, block: Block, width: int) -> Array:
        size = self._layout.rows * width  # of a patch
        return flat[block.start * size : block.end * size].reshape(PHASES, -1, width)

    def _centred(self, out: Array, mean: Array) -> Array:
        """Outputs less their mean along a patch, zero between patches."""
        centred = self._space.array("centred", *out.shape)
        by_patch = centred.reshape(PHASES, -1, mean.shape[2])
        np.subtract(out.reshape(by_patch.shape), mean, out=by_patch)
        return centred

    @property
    def _space(self) -> Workspace:
        """This thread's buffers."""
        if not hasattr(self._local, "space"):
            self._local.space = Workspace()
        space: Workspace = self._local.space
        return space


def convolution(encoder: Encoder, i: int, gain: Array | float = 1) -> Convolution:
    """The convolution of stage i, its kernel times `gain`."""
    stage = encoder[i]
    kernel = np.asarray(stage.kernel * np.float32(gain), np.float32)
    if i == 0:
        return First(kernel, stage.groups)
    return Pointwise(kernel) if kernel.shape[2] == 1 else Winograd(kernel)


def _blocks(counts: NDArray[np.intp]) -> list[Block]:
    """Blocks of patches with equal counts; `counts` is sorted."""
    borders = np.flatnonzero(np.diff(counts, prepend=0, append=0))
    return [
        Block(a, min(a + BLOCK, end), int(counts[a]))
        for start, end in pairwise(borders.tolist())
        for a in range(start, end, BLOCK)
    ]


def _sums(rows: Array) -> Exact:
    """(PHASES, rows, out) summed over rows, (out,), by products with ones."""
    ones = np.ones((1, rows.shape[1]), np.float32)
    return np.asarray((ones @ rows).sum(axis=(0, 1), dtype=np.float64))
