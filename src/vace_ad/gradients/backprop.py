"""The encoder's training pass by hand: batch statistics forward, gradients backward.

The arithmetic is that of the plain module (convolution, BatchNorm over the batch, ReLU, mean over
time) and its chain rule. What makes it quick:

- equal patches of a batch are computed once and counted as often as they occur;
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

from vace_ad.engine.encoder import Encoder
from vace_ad.engine.patches import distinct
from vace_ad.gradients.batch_norm import Array, BatchNorm, Block, Exact, Moments
from vace_ad.gradients.convolution import (
    PHASES,
    Convolution,
    First,
    Layout,
    Pointwise,
    Workspace,
    windows,
)
from vace_ad.gradients.winograd import Winograd

Item = TypeVar("Item")
Result = TypeVar("Result")
Layer = First | Pointwise | Winograd
BLOCK = 24  # patches a block
LANES = 8  # sums of gradients that are kept apart


class Gradients(NamedTuple):
    """The gradients of one stage."""

    kernel: Array  # (out, in / groups, taps)
    gamma: Array | None  # (out,); None without BatchNorm
    beta: Array | None


class Batch(NamedTuple):
    """A batch in which each different patch is kept once."""

    patches: Array  # (n, n_channels, P), those that occur equally often together
    counts: NDArray[np.intp]  # (n,), how often each occurs
    where: NDArray[np.intp]  # which of them stands at each place of the batch, any shape

    @classmethod
    def of(cls, numbers: NDArray[np.intp], gather: Callable[[NDArray[np.intp]], Array]) -> Batch:
        """The batch of the patches of these numbers."""
        each, where = np.unique(numbers, return_inverse=True)
        patches = gather(each)
        first, same = distinct(patches)
        where = same[where]
        counts = np.bincount(where.ravel(), minlength=len(first))
        order = np.argsort(counts, kind="stable")
        places = np.argsort(order)[where].reshape(numbers.shape)
        return cls(patches[first[order]], counts[order], places)


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
        """Embeddings (n, d_z) of different patches (n, n_channels, P), sorted by their counts."""
        self._encoder, self._patches = encoder, patches
        self._blocks = _blocks(counts)
        self.norms: list[BatchNorm] = []
        for i, stage in enumerate(encoder):
            moments = self._map(partial(self._convolve, i, self._layer(i)), self._blocks)
            self.norms.append(BatchNorm(stage.norm, moments, self._blocks, self._layout))
        return np.concatenate(self._map(self._pool, self._blocks))

    def backward(self, slope: Array) -> list[Gradients]:
        """Gradients of every stage from the gradient (n, d_z) in the embeddings just made.

        The gradient in a distinct patch's embedding is the sum over its occurrences.
        """
        self._embedding_slope = (slope * self.norms[-1].factor / self._layout.length).astype(
            np.float32
        )
        gradients: list[Gradients] = []
        lanes = [self._blocks[k::LANES] for k in range(LANES)]
        sums = self._map(self._unpool, self._blocks)
        for i in range(len(self._encoder) - 1, -1, -1):
            gamma, beta, lost = self.norms[i].differentiate(sums)
            taken_up = self._taken_up(i) * self.norms[i].gain[:, None, None]
            layer = self._layer(i, taken_up)
            done = self._map(partial(self._back, i, layer, lost), lanes)
            kernel = layer.to_kernel(np.sum([total for total, _ in done], axis=0)) * taken_up
            gradients.append(Gradients(kernel.astype(np.float32), gamma, beta))
            sums = [part for _, parts in done for part in parts]
        return gradients[::-1]

    # ------------------------------------------------------- forward, in parts

    def _convolve(self, i: int, layer: Convolution, block: Block) -> Moments:
        """Compute the outputs of a stage; their moments."""
        out = self._output(i, block)
        layer.forward(self._enter(i, layer, block), out, self._space)
        self._layout.clear(out)
        n = (block.end - block.start) * self._layout.length
        return Moments.of(out, n, self._layout, self._space)

    def _enter(self, i: int, layer: Convolution, block: Block) -> Array:
        """The inputs of a stage: windows of patches, or the stage before after ReLU."""
        if i == 0:
            taps = self._encoder[0].kernel.shape[2]
            patches = self._patches[block.start : block.end]
            return windows(patches, taps, self._layout, self._space)
        before = self._output(i - 1, block)
        slots = self._space.array("inputs", layer.slots, *before.shape[1:])
        self.norms[i - 1].apply(before, slots[layer.lead : layer.lead + PHASES])
        return slots

    def _pool(self, block: Block) -> Array:
        """The embeddings of a block, (n, d_z)."""
        total = self._by_patch(self._last_hidden(block), block).sum(axis=(0, 2))
        return np.asarray(total * self.norms[-1].factor / self._layout.length, np.float32)

    def _last_hidden(self, block: Block) -> Array:
        last = self._output(len(self._encoder) - 1, block)
        hidden = self._space.array("inputs", *last.shape)
        self.norms[-1].apply(last, hidden)
        return hidden

    # ------------------------------------------------------ backward, in parts

    def _unpool(self, block: Block) -> tuple[Exact, Exact]:
        """The slope of the mean over time, behind the last ReLU."""
        hidden = self._last_hidden(block)
        slope = self._space.array("to inputs", *hidden.shape)
        self._by_patch(slope, block)[:] = self._embedding_slope[block.start : block.end, None]
        return self._through_relu(len(self._encoder) - 1, block, hidden, slope)

    def _through_relu(
        self, i: int, block: Block, hidden: Array, slope: Array
    ) -> tuple[Exact, Exact]:
        """Keep the slope where ReLU let `hidden` through, so never after a patch's end."""
        kept = self._slope(i, block)
        np.multiply(slope, hidden > 0, out=kept)
        return self.norms[i].slope_sums(self._output(i, block), kept, self._space)

    def _back(
        self, i: int, layer: Layer, lost: tuple[Exact, Exact], lane: Sequence[Block]
    ) -> tuple[Array, list[tuple[Exact, Exact]]]:
        """A lane's gradient in the layer's matrix; slopes and their sums one stage earlier."""
        space = self._space
        total = np.zeros_like(layer.matrix)
        sums = []
        every = {block.times for block in lane}
        rows = {m: [self._layout.along(m * part) for part in lost] for m in every}
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
            if not isinstance(layer, First):
                hidden = inputs[layer.lead : layer.lead + PHASES]
                earlier = layer.to_inputs(slope, space)
                sums.append(self._through_relu(i - 1, block, hidden, earlier))
        return total, sums

    # ------------------------------------------------------ kernels and storage

    def _layer(self, i: int, taken_up: Exact | None = None) -> Layer:
        """The convolution of a stage, with what its kernel takes up from BatchNorm."""
        stage = self._encoder[i]
        kernel = stage.kernel * (self._taken_up(i) if taken_up is None else taken_up)
        return convolution(kernel.astype(np.float32), stage.groups, self._layout, first=i == 0)

    def _taken_up(self, i: int) -> Exact:
        """The factor of the stage before, as the kernel of this one takes it up."""
        return self.norms[i - 1].factor[None, :, None] if i else np.ones((1, 1, 1))

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

    @staticmethod
    def _by_patch(rows: Array, block: Block) -> Array:
        """(PHASES, rows, width) seen as (PHASES, n, tiles, width)."""
        return rows.reshape(PHASES, block.end - block.start, -1, rows.shape[2])

    @property
    def _space(self) -> Workspace:
        """This thread's buffers."""
        if not hasattr(self._local, "space"):
            self._local.space = Workspace()
        space: Workspace = self._local.space
        return space


def convolution(kernel: Array, groups: int, layout: Layout, first: bool) -> Layer:
    """The convolution of a stage."""
    if first:
        return First(kernel, groups)
    return Pointwise(kernel) if kernel.shape[2] == 1 else Winograd(kernel, layout)


def _blocks(counts: NDArray[np.intp]) -> list[Block]:
    """Blocks of patches with equal counts; `counts` is sorted."""
    borders = np.flatnonzero(np.diff(counts, prepend=0, append=0))
    return [
        Block(a, min(a + BLOCK, end), int(counts[a]))
        for start, end in pairwise(borders.tolist())
        for a in range(start, end, BLOCK)
    ]
