"""Convolutions and their gradients as large matrix products.

Patches lie end to end in time-first rows with a few rows of zeros between them, so a convolution
of many patches is one convolution of a long series.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float32]


class Layout(NamedTuple):
    """How patches lie end to end."""

    length: int  # P, rows of a patch
    pitch: int  # rows from one patch to the next; the rows between hold zeros
    margin: int  # zero rows that a convolution may look back or ahead

    @classmethod
    def of(cls, length: int, margin: int) -> Layout:
        """Patches as close as they may lie for tiles of four rows."""
        return cls(length, 4 * (-(-length // 4) + -(-margin // 4)), margin)

    def inside(self, rows: Array) -> Array:
        """(n · pitch, width) seen as (n, P, width), without the rows between patches."""
        return rows.reshape(-1, self.pitch, rows.shape[1])[:, : self.length]

    def tiled(self, vector: NDArray[np.floating]) -> Array:
        """A value for each channel as the rows of a patch, (pitch · width,), zero between."""
        rows = np.zeros((self.pitch, len(vector)), np.float32)
        rows[: self.length] = vector
        return rows.ravel()


class Rows(NamedTuple):
    """Rows with zero rows before and after them."""

    whole: Array
    inside: Array  # (n_rows, width), a view
    margin: int


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

    def rows(self, name: str, n_rows: int, width: int, margin: int) -> Rows:
        """Rows to be written, the margins zero."""
        whole = self.array(name, n_rows + 3 * margin + 4, width)  # as far as any window looks
        whole[:margin] = 0
        whole[margin + n_rows :] = 0
        return Rows(whole, whole[margin : margin + n_rows], margin)


class Convolution(Protocol):
    """A convolution with same padding; `matrix` is its kernel in the form it computes with."""

    matrix: Array

    def forward(self, inputs: Rows, out: Array, space: Workspace) -> None:
        """The outputs (rows, out) of the inputs (rows, in)."""
        ...

    def to_matrix(self, inputs: Rows, slope: Rows, total: Array, space: Workspace) -> None:
        """Add the gradient in `matrix` to `total`, from that in the outputs, `slope`."""
        ...

    def to_inputs(self, slope: Rows, space: Workspace) -> Array:
        """The gradient in the inputs (rows, in); called right after `to_matrix`."""
        ...

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel."""
        ...


class Dense:
    """Every output channel sees every input channel."""

    def __init__(self, kernel: Array) -> None:
        self._taps = kernel.shape[2]
        self.matrix = np.ascontiguousarray(kernel.transpose(2, 1, 0))  # (taps, in, out)
        self._flipped = np.ascontiguousarray(kernel.transpose(2, 0, 1)[::-1])  # (taps, out, in)

    def forward(self, inputs: Rows, out: Array, space: Workspace) -> None:
        """The outputs (rows, out) of the inputs (rows, in)."""
        _correlate(inputs, self.matrix, out)

    def to_matrix(self, inputs: Rows, slope: Rows, total: Array, space: Workspace) -> None:
        """Add the gradient in `matrix` to `total`."""
        first, n = inputs.margin - self._taps // 2, len(slope.inside)
        for tap in range(self._taps):
            total[tap] += inputs.whole[first + tap : first + tap + n].T @ slope.inside

    def to_inputs(self, slope: Rows, space: Workspace) -> Array:
        """The gradient in the inputs (rows, in)."""
        out = space.array("to inputs", len(slope.inside), self.matrix.shape[1])
        _correlate(slope, self._flipped, out)
        return out

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel (out, in, taps)."""
        return np.ascontiguousarray(total.transpose(2, 1, 0))


class Depthwise:
    """Each input channel has filters of its own; always the first stage."""

    def __init__(self, kernel: Array, groups: int) -> None:
        n_out, _, taps = kernel.shape
        grouped = kernel.reshape(groups, n_out // groups, taps)
        self.matrix = np.ascontiguousarray(grouped.transpose(0, 2, 1))  # (groups, taps, filters)

    def forward(self, inputs: Rows, out: Array, space: Workspace) -> None:
        """The outputs (rows, groups · filters) of the inputs (rows, groups)."""
        windows = self._windows(inputs, len(out), space)
        np.matmul(windows.transpose(0, 2, 1), self.matrix, out=self._by_group(out))

    def to_matrix(self, inputs: Rows, slope: Rows, total: Array, space: Workspace) -> None:
        """Add the gradient in `matrix` to `total`."""
        windows = self._windows(inputs, len(slope.inside), space)
        total += windows @ self._by_group(slope.inside)

    def to_inputs(self, slope: Rows, space: Workspace) -> Array:
        """Never asked for: nothing that learns comes before the first stage."""
        raise NotImplementedError("a depthwise convolution is the first stage")

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel (out, 1, taps)."""
        groups, taps, filters = total.shape
        return np.ascontiguousarray(total.transpose(0, 2, 1)).reshape(groups * filters, 1, taps)

    def _windows(self, inputs: Rows, n: int, space: Workspace) -> Array:
        """The inputs around each row, (groups, taps, n)."""
        groups, taps, _ = self.matrix.shape
        first = inputs.margin - taps // 2
        series = space.array("series", groups, n + taps - 1)
        series[:] = inputs.whole[first : first + n + taps - 1].T
        windows = space.array("windows", groups, taps, n)
        windows[:] = sliding_window_view(series, n, axis=1)
        return windows

    def _by_group(self, rows: Array) -> Array:
        """(n, groups · filters) seen as (groups, n, filters)."""
        return rows.reshape(len(rows), len(self.matrix), -1).transpose(1, 0, 2)


def _correlate(series: Rows, matrix: Array, out: Array) -> None:
    """out[r] = Σ_j series[r + j − taps // 2] @ matrix[j], in products of full depth.

    The windows that begin at rows s, s + taps, s + 2·taps, … do not overlap: they are one plain
    matrix, and nothing is copied.
    """
    taps, n_in, n_out = matrix.shape
    first = series.margin - taps // 2
    flat = series.whole.reshape(-1)[first * n_in :]
    deep = matrix.reshape(taps * n_in, n_out)
    for s in range(min(taps, len(out))):
        target = out[s::taps]  # (m, n_out)
        windows = flat[s * n_in : (s + len(target) * taps) * n_in]
        np.matmul(windows.reshape(len(target), taps * n_in), deep, out=target)
