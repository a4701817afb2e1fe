"""Convolutions of 3 or 5 taps with few multiplications (Toom and Cook; Winograd, 1980).

Six outputs y of r taps g over n = r + 5 inputs d are coefficients of a product of polynomials,
so they follow from its values at n points: y = Aᵀ[(G g) ⊙ (Bᵀ d)], with n multiplications instead
of 6·r. Over channels, ⊙ is n matrix products, where the time goes; A, B and G are small constant
matrices.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyfromroots

from vace_ad.gradients.convolution import PHASES, Array, Layout, Workspace

# By taps; besides, infinity. The last pair was found to lose least: 3e-6 of the outputs' deviation.
POINTS = {3: (0, 1, -1, 2, -2, 0.5, -0.5), 5: (0, 1, -1, 2, -2, 0.5, -0.5, 0.75, -0.75)}


class Matrices(NamedTuple):
    """The transforms for r taps, with n = r + 5 points."""

    inputs: Array  # Bᵀ, (n, n)
    kernel: Array  # G, (n, r)
    outputs: Array  # A, (n, PHASES)


@cache
def matrices(taps: int) -> Matrices:
    """Evaluation at the points, and interpolation by Lagrange's polynomials."""
    points = POINTS[taps]
    n = len(points) + 1
    inputs, kernel, outputs = np.zeros((n, n)), np.zeros((n, taps)), np.zeros((n, PHASES))
    for t, point in enumerate(points):
        others = [other for other in points if other != point]
        inputs[t, : n - 1] = polyfromroots(others)
        kernel[t] = float(point) ** np.arange(taps) / np.prod(point - np.array(others))
        outputs[t] = float(point) ** np.arange(PHASES)
    inputs[-1] = polyfromroots(points)  # infinity: the leading coefficient
    kernel[-1, -1] = outputs[-1, -1] = 1
    return Matrices(*(part.astype(np.float32) for part in (inputs, kernel, outputs)))


class Winograd:
    """A convolution of 3 or 5 taps."""

    def __init__(self, kernel: Array, layout: Layout) -> None:
        self._layout = layout
        taps = kernel.shape[2]
        self._transforms = matrices(taps)
        self.slots, self.lead = taps + PHASES - 1, taps // 2
        plain = kernel.transpose(2, 1, 0).astype(np.float64)  # (taps, in, out)
        values = np.tensordot(self._transforms.kernel, plain, 1)
        self.matrix = values.astype(np.float32)  # G g, (n, in, out)

    def forward(self, inputs: Array, out: Array, space: Workspace) -> None:
        """The outputs (PHASES, rows, out) of inputs (n, rows, in)."""
        values = self._values(inputs, space)
        products = space.array("products", *values.shape[:2], out.shape[2])
        np.matmul(values, self.matrix, out=products)
        _apply(self._transforms.outputs.T, products, out)

    def to_matrix(self, inputs: Array, slope: Array, total: Array, space: Workspace) -> None:
        """Add the gradient in `matrix` to `total`."""
        values = self._values(inputs, space)
        slopes = space.array("products", *values.shape[:2], slope.shape[2])
        _apply(self._transforms.outputs, slope, slopes)
        step = space.array("step", *total.shape)
        np.matmul(values.transpose(0, 2, 1), slopes, out=step)
        total += step

    def to_inputs(self, slope: Array, space: Workspace) -> Array:
        """The gradient in the inputs, from the slopes that `to_matrix` left in the workspace."""
        n, n_in, n_out = self.matrix.shape
        slopes = space.array("products", n, slope.shape[1], n_out)
        values = space.array("values", n, slope.shape[1], n_in)
        np.matmul(slopes, self.matrix.transpose(0, 2, 1), out=values)
        slots = space.array("to inputs", *values.shape)
        _apply(self._transforms.inputs.T, values, slots)
        return self._layout.gather_back(slots, self.lead)

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel (out, in, taps)."""
        plain = np.tensordot(self._transforms.kernel.T, total.astype(np.float64), 1)
        return np.ascontiguousarray(plain.transpose(2, 1, 0), np.float32)

    def _values(self, inputs: Array, space: Workspace) -> Array:
        """Bᵀ d of every tile, (n, rows, in)."""
        self._layout.surround(inputs, self.lead)
        values = space.array("values", *inputs.shape)
        _apply(self._transforms.inputs, inputs, values)
        return values


def _apply(matrix: Array, given: Array, out: Array) -> None:
    """out[t] = Σ_k matrix[t, k] · given[k], for (m, rows, channels) to (n, rows, channels)."""
    np.matmul(matrix, given.reshape(len(given), -1), out=out.reshape(len(out), -1))
