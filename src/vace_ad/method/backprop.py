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

from vace_ad.method.convolution import Convolution, Dense, Depthwise, Layout, Rows, Workspace
from vace_ad.method.encoder import BATCH_NORM_EPSILON, Encoder
from vace_ad.method.winograd import PAIRS, Winograd

Array = NDArray[np.float32]
Exact = NDArray[np.float64]
Item = TypeVar("Item")
Result = TypeVar("Result")
BLOCK = 16  # patches a block
LANES = 8  # sums of gradients that are kept apart
WIDE = 64  # in·out / (in + out) from which Winograd's convolution is quicker


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
    """y ↦ gain · y + shift, each (out,)."""

    gain: Array
    shift: Array


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
        margin = max(stage.kernel.shape[2] // 2 for stage in encoder)
        self._layout = Layout.of(patch_length, margin)
        self._widths = [len(stage.kernel) for stage in encoder]
        rows = capacity * self._layout.pitch
        self._outputs = [np.empty((rows, width), np.float32) for width in self._widths]
        self._slopes = [np.empty(rows * max(self._widths), np.float32) for _ in range(2)]
        self._workers = workers
        self._local = threading.local()

    def forward(self, encoder: Encoder, patches: Array, counts: NDArray[np.intp]) -> Array:
        """Embeddings (n, d_z) of distinct patches (n, n_channels, P), sorted by their counts."""
        self._encoder, self._patches = encoder, patches
        self._blocks = _blocks(counts)
        self._n = int(counts.sum()) * self._layout.length  # rows that BatchNorm counts
        self.statistics: list[Statistics] = []
        self._maps: list[Map] = []
        self._tiles: list[tuple[Array, Array, Array]] = []  # gain, shift and 0 along a patch
        for i, stage in enumerate(encoder):
            work = partial(self._convolve, i, convolution(stage.kernel, stage.groups, self._layout))
            self._measure(i, self._map(work, self._blocks))
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
            stage, gain = self._encoder[i], self._maps[i].gain[:, None, None]
            beta, gamma, before = self._differentiate_norm(i, sums)
            # Slopes carry BatchNorm's gain no further than here: the kernel takes it.
            layer = convolution(stage.kernel * gain, stage.groups, self._layout)
            done = self._map(partial(self._back, i, layer, before), lanes)
            kernel = layer.to_kernel(np.sum([total for total, _ in done], axis=0)) * gain
            sums = [part for _, parts in done for part in parts]
            plain = stage.norm is None
            gradients.append(Gradients(kernel, None if plain else gamma, None if plain else beta))
        return gradients[::-1]

    # ------------------------------------------------------- forward, in parts

    def _convolve(self, i: int, layer: Convolution, block: Block) -> tuple[Exact, Exact]:
        """Compute the outputs of a stage; their mean and the squares about it, (out,)."""
        out = self._part(self._outputs[i], block)
        layer.forward(self._enter(i, block), out, self._space)
        inside = self._layout.inside(out)
        mean = _time_sums(inside).mean(axis=0, dtype=np.float64) / self._layout.length
        centred = self._layout.inside(self._space.array("centred", *out.shape))
        np.subtract(inside, mean.astype(np.float32), out=centred)
        squares = np.einsum("npc,npc->nc", centred, centred).sum(axis=0, dtype=np.float64)
        return mean, squares

    def _enter(self, i: int, block: Block) -> Rows:
        """The inputs of a stage: patches, or the stage before after BatchNorm and ReLU."""
        n_rows = (block.end - block.start) * self._layout.pitch
        if i == 0:
            patches = self._patches[block.start : block.end]
            rows = self._space.rows("inputs", n_rows, patches.shape[1], self._layout.margin)
            rows.inside[:] = 0
            self._layout.inside(rows.inside)[:] = patches.transpose(0, 2, 1)
            return rows
        gain, shift, zero = self._tiles[i - 1]
        rows = self._space.rows("inputs", n_rows, self._widths[i - 1], self._layout.margin)
        hidden = rows.inside.reshape(-1, gain.size)  # (n, pitch · in)
        before = self._part(self._outputs[i - 1], block).reshape(hidden.shape)
        np.multiply(before, gain, out=hidden)
        hidden += shift
        np.maximum(hidden, zero, out=hidden)
        return rows

    def _measure(self, i: int, moments: Sequence[tuple[Exact, Exact]]) -> None:
        """BatchNorm's statistics from those of the blocks, and the map it then is."""
        means, squares = (np.array(part) for part in zip(*moments, strict=True))
        times = np.array([block.times for block in self._blocks], np.float64)
        rows = times * [(b.end - b.start) * self._layout.length for b in self._blocks]
        mean = rows @ means / self._n
        total = times @ squares + rows @ (means - mean) ** 2
        self.statistics.append(Statistics(mean, total / self._n, total / max(1, self._n - 1)))
        norm, tiled = self._encoder[i].norm, self._layout.tiled
        gain, shift = np.ones_like(mean), np.zeros_like(mean)
        if norm is not None:
            gain = norm.gamma / np.sqrt(total / self._n + BATCH_NORM_EPSILON)
            shift = norm.beta - mean * gain
        self._maps.append(Map(gain.astype(np.float32), shift.astype(np.float32)))
        self._tiles.append((tiled(gain), tiled(shift), tiled(np.zeros_like(mean))))

    def _pool(self, block: Block) -> Array:
        """The embeddings of a block, (n, d_z)."""
        hidden = self._layout.inside(self._enter(len(self._encoder), block).inside)
        return np.asarray(_time_sums(hidden) / np.float32(self._layout.length))

    # ------------------------------------------------------ backward, in parts

    def _unpool(self, block: Block) -> tuple[Exact, Exact]:
        """The slope of the mean over time, behind the last ReLU."""
        last = len(self._encoder) - 1
        hidden = self._enter(last + 1, block).inside
        slope = self._space.array("to inputs", *hidden.shape)
        slope[:] = 0
        self._layout.inside(slope)[:] = self._embedding_slope[block.start : block.end, None]
        return self._through_relu(last, block, hidden, slope)

    def _through_relu(
        self, i: int, block: Block, hidden: Array, slope: Array
    ) -> tuple[Exact, Exact]:
        """Keep the slope where ReLU let `hidden` through; Σ slope and Σ slope · (y − mean)."""
        kept = self._slope_part(i, block)
        np.multiply(slope, hidden > 0, out=kept)
        out = self._layout.inside(self._part(self._outputs[i], block))
        centred = self._layout.inside(self._space.array("centred", *kept.shape))
        np.subtract(out, self.statistics[i].mean.astype(np.float32), out=centred)
        inside = self._layout.inside(kept)
        products = np.einsum("npc,npc->nc", inside, centred)
        sums = _time_sums(inside), products
        return tuple(part.sum(axis=0, dtype=np.float64) for part in sums)

    def _differentiate_norm(
        self, i: int, sums: Sequence[tuple[Exact, Exact]]
    ) -> tuple[Array, Array, Map]:
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
        return (
            sum_slope.astype(np.float32),
            gamma.astype(np.float32),
            Map(linear.astype(np.float32), constant.astype(np.float32)),
        )

    def _back(
        self, i: int, layer: Convolution, taken: Map, lane: Sequence[Block]
    ) -> tuple[Array, list[tuple[Exact, Exact]]]:
        """A lane's gradient in the layer's matrix; slopes and their sums one stage earlier."""
        layout, space = self._layout, self._space
        total = np.zeros_like(layer.matrix)
        sums = []
        tiles = {  # what an output that occurs so often loses
            times: [layout.tiled(times * part) for part in taken]
            for times in {block.times for block in lane}
        }
        for block in lane:
            linear, constant = tiles[block.times]
            out = self._part(self._outputs[i], block)
            rows = space.rows("slope", len(out), out.shape[1], layout.margin)
            slope = rows.inside.reshape(-1, linear.size)  # (n, pitch · out)
            np.multiply(out.reshape(slope.shape), linear, out=slope)
            slope += constant
            slope += self._slope_part(i, block).reshape(slope.shape)
            inputs = self._enter(i, block)
            layer.to_matrix(inputs, rows, total, space)
            if i > 0:
                earlier = layer.to_inputs(rows, space)
                sums.append(self._through_relu(i - 1, block, inputs.inside, earlier))
        return total, sums

    # ----------------------------------------------------------------- storage

    def _map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        return list(self._workers.map(work, items))

    def _part(self, rows: Array, block: Block) -> Array:
        return rows[block.start * self._layout.pitch : block.end * self._layout.pitch]

    def _slope_part(self, i: int, block: Block) -> Array:
        """Where the slopes behind a stage lie; those of two stages in a row lie apart."""
        width, flat = self._widths[i], self._slopes[i % 2]
        return self._part(flat[: len(flat) // width * width].reshape(-1, width), block)

    @property
    def _space(self) -> Workspace:
        """This thread's buffers."""
        if not hasattr(self._local, "space"):
            self._local.space = Workspace()
        space: Workspace = self._local.space
        return space


def convolution(kernel: Array, groups: int, layout: Layout) -> Convolution:
    """The quickest way to compute a convolution."""
    n_out, n_in, taps = kernel.shape
    if groups > 1:
        return Depthwise(kernel, groups)
    # Products save with in · out, transforms cost with in + out.
    if taps in PAIRS and n_in * n_out >= WIDE * (n_in + n_out):
        return Winograd(kernel, layout)
    return Dense(kernel)


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
