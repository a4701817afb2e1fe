"""Convolutions and their gradients as large matrix products, for the training pass.

Patches lie end to end in time-first rows with a few rows of zeros between them, so a convolution
of many patches is one convolution of a long series.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.method.encoder import Stage

Array = NDArray[np.float32]


class Rows:
    """A reusable buffer of rows with zero rows before and after them."""

    def __init__(self, rows: int, widest: int, margin: int) -> None:
        self.margin = margin
        self._flat = np.zeros((rows + 2 * margin + 1) * widest, np.float32)

    def take(self, rows: int, width: int) -> Array:
        """The inside (rows, width), to be written; what it held before is lost."""
        self.whole = self._flat[: (rows + 2 * self.margin + 1) * width].reshape(-1, width)
        self.whole[: self.margin] = 0
        self.whole[self.margin + rows :] = 0
        self.inside = self.whole[self.margin : self.margin + rows]
        return self.inside


class Dense:
    """A convolution in which every output channel sees every input channel."""

    def __init__(self, kernel: Array) -> None:
        self._taps = kernel.shape[2]
        self.matrix = np.ascontiguousarray(kernel.transpose(2, 1, 0))  # (taps, in, out)
        self._flipped = np.ascontiguousarray(kernel.transpose(2, 0, 1)[::-1])  # (taps, out, in)

    def forward(self, inputs: Rows, out: Array) -> None:
        """The outputs (rows, out) of the inputs (rows, in)."""
        _correlate(inputs, self.matrix, out)

    def to_inputs(self, slope: Rows, out: Array) -> None:
        """The gradient in the inputs (rows, in) from that in the outputs (rows, out)."""
        _correlate(slope, self._flipped, out)

    def to_matrix(self, inputs: Rows, slope: Rows, total: Array) -> None:
        """Add the gradient in `matrix` to `total`."""
        first, n = inputs.margin - self._taps // 2, len(slope.inside)
        for tap in range(self._taps):
            total[tap] += inputs.whole[first + tap : first + tap + n].T @ slope.inside

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel (out, in, taps)."""
        return np.ascontiguousarray(total.transpose(2, 1, 0))


class Depthwise:
    """A convolution in which each input channel has filters of its own; always the first stage."""

    def __init__(self, kernel: Array, groups: int) -> None:
        n_out, _, taps = kernel.shape
        grouped = kernel.reshape(groups, n_out // groups, taps)
        self.matrix = np.ascontiguousarray(grouped.transpose(0, 2, 1))  # (groups, taps, filters)

    def forward(self, inputs: Rows, out: Array) -> None:
        """The outputs (rows, groups · filters) of the inputs (rows, groups)."""
        windows = self._windows(inputs, len(out))
        np.matmul(windows.transpose(0, 2, 1), self.matrix, out=self._by_group(out))

    def to_inputs(self, slope: Rows, out: Array) -> None:
        """Nothing comes before the first stage that would learn."""

    def to_matrix(self, inputs: Rows, slope: Rows, total: Array) -> None:
        """Add the gradient in `matrix` to `total`."""
        windows = self._windows(inputs, len(slope.inside))
        total += windows @ self._by_group(slope.inside)

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel (out, 1, taps)."""
        groups, taps, filters = total.shape
        return np.ascontiguousarray(total.transpose(0, 2, 1)).reshape(groups * filters, 1, taps)

    def _windows(self, inputs: Rows, n: int) -> Array:
        """The inputs around each row, (groups, taps, n)."""
        first, taps = inputs.margin - self.matrix.shape[1] // 2, self.matrix.shape[1]
        series = np.ascontiguousarray(inputs.whole[first : first + n + taps - 1].T)
        return np.ascontiguousarray(sliding_window_view(series, n, axis=1))

    def _by_group(self, rows: Array) -> Array:
        """(n, groups · filters) seen as (groups, n, filters)."""
        return rows.reshape(len(rows), len(self.matrix), -1).transpose(1, 0, 2)


Convolution = Dense | Depthwise


def convolution_of(stage: Stage) -> Convolution:
    """The convolution of a stage."""
    return Depthwise(stage.kernel, stage.groups) if stage.groups > 1 else Dense(stage.kernel)


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
