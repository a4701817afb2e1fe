"""Convolutions of many patches, and their gradients, as large matrix products.

Time is cut into tiles of six rows. A block of patches lies in memory phase by phase: first row 0
of every tile, then row 1 of every tile, and so on, the patches end to end. So a shift in time is
another phase or a shift by a tile, and every step is one product of large matrices.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
PHASES = 6  # rows of a tile


class Layout(NamedTuple):
    """How the patches of a block lie in memory: (PHASES, n · tiles, channels)."""

    length: int  # P, rows of a patch

    @property
    def tiles(self) -> int:
        """Tiles of a patch; the last may not be full."""
        return -(-self.length // PHASES)

    @property
    def rows(self) -> int:
        """Rows of a patch, those after its end included."""
        return PHASES * self.tiles

    def along(self, vector: NDArray[np.floating]) -> Array:
        """A value for each channel as rows (PHASES, 1, tiles · channels), zero after the end."""
        rows = np.empty((PHASES, self.tiles, len(vector)), np.float32)
        rows[:] = vector
        self.clear(rows)
        return rows.reshape(PHASES, 1, -1)

    def clear(self, block: Array) -> None:
        """Set the rows after the end of each patch to zero."""
        by_patch = block.reshape(PHASES, -1, self.tiles, block.shape[2])
        by_patch[PHASES - -self.length % PHASES :, :, -1] = 0

    def shift(self, source: Array, tiles: int, target: Array) -> None:
        """target[j] = source[j + tiles] for a shift by one tile or none, zero beyond a patch."""
        source, target = self._by_patch(source), self._by_patch(target)
        if tiles == 0:
            target[:] = source
        elif tiles > 0:
            target[:, :-1], target[:, -1] = source[:, 1:], 0
        else:
            target[:, 1:], target[:, 0] = source[:, :-1], 0

    def surround(self, slots: Array, lead: int) -> None:
        """Fill the slots before and after the phases from the tiles beside, (slots, rows, in)."""
        for k in range(len(slots)):
            tile, phase = divmod(k - lead, PHASES)
            if tile:
                self.shift(slots[lead + phase], tile, slots[k])

    def gather_back(self, slots: Array, lead: int) -> Array:
        """The adjoint of `surround`: add each slot to the phase it was taken from."""
        for k in range(len(slots)):
            tile, phase = divmod(k - lead, PHASES)
            target, slot = self._by_patch(slots[lead + phase]), self._by_patch(slots[k])
            if tile > 0:
                target[:, 1:] += slot[:, :-1]
            elif tile < 0:
                target[:, :-1] += slot[:, 1:]
        return slots[lead : lead + PHASES]

    def _by_patch(self, rows: Array) -> Array:
        """(n · tiles, channels) seen as (n, tiles, channels)."""
        return rows.reshape(-1, self.tiles, rows.shape[1])


class Workspace:
    """Buffers of one thread, by name, kept from one use to the next."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def array(self, name: str, *shape: int) -> Array:
        """An array to be written; what it held before is lost."""
        size = math.prod(shape)
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = np.zeros(size, np.float32)
        return self._buffers[name][:size].reshape(shape)


class Convolution(Protocol):
    """A convolution with same padding; `matrix` is its kernel in the form it computes with.

    Inputs come in `slots` slots (slots, rows, in): the six phases from slot `lead` on, and
    around them, for a convolution that looks beyond its tile, phases of the tiles beside.
    """

    slots: int
    lead: int
    matrix: Array

    def forward(self, inputs: Array, out: Array, space: Workspace) -> None:
        """The outputs (PHASES, rows, out)."""
        ...

    def to_matrix(self, inputs: Array, slope: Array, total: Array, space: Workspace) -> None:
        """Add the gradient in `matrix` to `total`, from that in the outputs, `slope`."""
        ...

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel."""
        ...


class Pointwise:
    """One tap: a row sees itself."""

    slots, lead = PHASES, 0

    def __init__(self, kernel: Array) -> None:
        self.matrix = np.ascontiguousarray(kernel[:, :, 0].T)  # (in, out)

    def forward(self, inputs: Array, out: Array, space: Workspace) -> None:
        """The outputs (PHASES, rows, out)."""
        np.matmul(_flat(inputs), self.matrix, out=_flat(out))

    def to_matrix(self, inputs: Array, slope: Array, total: Array, space: Workspace) -> None:
        """Add the gradient in `matrix` to `total`."""
        total += _flat(inputs).T @ _flat(slope)

    def to_inputs(self, slope: Array, space: Workspace) -> Array:
        """The gradient in the inputs (PHASES, rows, in)."""
        out = space.array("to inputs", *slope.shape[:2], len(self.matrix))
        np.matmul(_flat(slope), self.matrix.T, out=_flat(out))
        return out

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel (out, in, 1)."""
        return np.ascontiguousarray(total.T)[:, :, None]


class First:
    """The first stage: few channels, wide windows; each channel may have filters of its own.

    Its inputs are windows (n_channels, taps, PHASES · rows) of the patches, and have no gradient:
    nothing that learns comes before them.
    """

    slots, lead = 0, 0

    def __init__(self, kernel: Array, groups: int) -> None:
        n_out, n_in, taps = kernel.shape
        self._shape = kernel.shape
        grouped = kernel.reshape(groups, n_out // groups, n_in * taps)
        self.matrix = np.ascontiguousarray(grouped.transpose(0, 2, 1))  # (groups, in · taps, out)

    def forward(self, inputs: Array, out: Array, space: Workspace) -> None:
        """The outputs (PHASES, rows, out)."""
        np.matmul(self._windows(inputs).transpose(0, 2, 1), self.matrix, out=self._by_group(out))

    def to_matrix(self, inputs: Array, slope: Array, total: Array, space: Workspace) -> None:
        """Add the gradient in `matrix` to `total`."""
        total += self._windows(inputs) @ self._by_group(slope)

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel (out, in / groups, taps)."""
        return np.ascontiguousarray(total.transpose(0, 2, 1)).reshape(self._shape)

    def _windows(self, inputs: Array) -> Array:
        """(groups, in · taps, n)."""
        return inputs.reshape(len(self.matrix), -1, inputs.shape[2])

    def _by_group(self, rows: Array) -> Array:
        """(PHASES, rows, groups · out) seen as (groups, PHASES · rows, out)."""
        flat = _flat(rows)
        return flat.reshape(len(flat), len(self.matrix), -1).transpose(1, 0, 2)


def windows(patches: Array, taps: int, layout: Layout, space: Workspace) -> Array:
    """Windows around every row of patches (n, n_channels, P): (n_channels, taps, PHASES · rows)."""
    n, n_channels, length = patches.shape
    in_time = space.array("in time", n_channels, n, layout.rows)
    in_time[:, :, length:] = 0
    in_time[:, :, :length] = patches.transpose(1, 0, 2)
    phases = space.array("phases", n_channels, PHASES, n * layout.tiles)
    by_tile = in_time.reshape(n_channels, n * layout.tiles, PHASES)
    phases[:] = by_tile.transpose(0, 2, 1)
    made = space.array("windows", n_channels, taps, PHASES, n * layout.tiles)
    for tap in range(taps):
        for phase in range(PHASES):
            tile, source = divmod(phase + tap - taps // 2, PHASES)
            layout.shift(phases[:, source].T, tile, made[:, tap, phase].T)
    return made.reshape(n_channels, taps, -1)


def _flat(block: Array) -> Array:
    """(PHASES, rows, channels) as (PHASES · rows, channels)."""
    return block.reshape(-1, block.shape[2])
