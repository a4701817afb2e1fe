"""Convolutions of 3 or 5 taps with half the multiplications (Toom and Cook; Winograd, 1980).

Four outputs y of r taps g over n = r + 3 inputs d are products of polynomials, so they follow from
values at n points: y = Aᵀ[(G g) ⊙ (Bᵀ d)], n multiplications instead of 4·r. Between channels, ⊙
is n matrix products, where the time goes; A, B and G are small constant matrices, applied by
additions. The points are 0, pairs ±p, and infinity: rows of a pair share their even part and
differ in the sign of their odd part, which halves those additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.polynomial.polynomial import polyfromroots
from numpy.typing import NDArray

from vace_ad.method.convolution import Array, Layout, Rows, Workspace

OUTPUTS = 4  # of a tile
PAIRS = {3: (1.0, 2.0), 5: (1.0, 2.0, 0.5)}  # the points ±p, by number of taps


class Matrices(NamedTuple):
    """The transforms for r taps, with n = r + 3 points."""

    inputs: NDArray[np.float64]  # Bᵀ, (n, n)
    kernel: NDArray[np.float64]  # G, (n, r)
    outputs: NDArray[np.float64]  # A, (n, 4)


@cache
def matrices(taps: int) -> Matrices:
    """Evaluation at the points, and interpolation by Lagrange's polynomials."""
    n = taps + OUTPUTS - 1
    points = [0.0, *(sign * p for p in PAIRS[taps] for sign in (1, -1))]
    found = Matrices(np.zeros((n, n)), np.zeros((n, taps)), np.zeros((n, OUTPUTS)))
    for t, point in enumerate(points):
        others = [other for other in points if other != point]
        found.inputs[t, : n - 1] = polyfromroots(others)
        found.kernel[t] = point ** np.arange(taps) / np.prod(point - np.array(others))
        found.outputs[t] = point ** np.arange(OUTPUTS)
    found.inputs[-1] = polyfromroots(points)  # the point at infinity: the leading coefficient
    found.kernel[-1, -1] = found.outputs[-1, -1] = 1
    return found


class Winograd:
    """A dense convolution of 3 or 5 taps, in the form `Dense` has."""

    def __init__(self, kernel: Array, layout: Layout) -> None:
        self._layout = layout
        self._taps = kernel.shape[2]
        self._transforms = matrices(self._taps)
        plain = kernel.transpose(2, 1, 0).astype(np.float64)  # (taps, in, out)
        values = np.tensordot(self._transforms.kernel, plain, 1)
        self.matrix = values.astype(np.float32)  # G g, (n, in, out)

    def forward(self, inputs: Rows, out: Array, space: Workspace) -> None:
        """The outputs (rows, out) of the inputs (rows, in); between patches they are zero."""
        values = self._values(inputs, space)
        products = space.array("products", *values.shape[:-1], out.shape[1])
        np.matmul(values, self.matrix, out=products)
        out.reshape(-1, self._layout.pitch, out.shape[1])[:, self._layout.length :] = 0
        targets = self._tiles(out, 0, OUTPUTS, len(out))
        contract(self._transforms.outputs, self._by_patch(products), targets, space)

    def to_matrix(self, inputs: Rows, slope: Rows, total: Array, space: Workspace) -> None:
        """Add the gradient in `matrix` to `total`."""
        values = self._values(inputs, space)
        slopes = space.array("products", *values.shape[:-1], slope.inside.shape[1])
        given = self._tiles(slope.whole, slope.margin, OUTPUTS, len(slope.inside))
        expand(self._transforms.outputs, given, self._by_patch(slopes), space)
        step = space.array("step", *total.shape)
        np.matmul(values.transpose(0, 2, 1), slopes, out=step)
        total += step

    def to_inputs(self, slope: Rows, space: Workspace) -> Array:
        """The gradient in the inputs (rows, in), from what `to_matrix` left in the workspace."""
        n, n_in, n_out = self.matrix.shape
        n_rows = len(slope.inside)
        n_tiles = n_rows // self._layout.pitch * self._tiles_a_patch
        slopes = space.array("products", n, n_tiles, n_out)
        values = space.array("values", n, n_tiles, n_in)
        np.matmul(slopes, self.matrix.transpose(0, 2, 1), out=values)
        made = space.rows("to inputs", n_rows, n_in, slope.margin)
        made.inside[:] = 0
        targets = self._tiles(made.whole, slope.margin - self._taps // 2, n, n_rows)
        contract(self._transforms.inputs, self._by_patch(values), targets, space)
        return made.inside

    def to_kernel(self, total: Array) -> Array:
        """A gradient in `matrix` as one in the kernel (out, in, taps)."""
        plain = np.tensordot(self._transforms.kernel.T, total.astype(np.float64), 1)
        return np.ascontiguousarray(plain.transpose(2, 1, 0), np.float32)

    @property
    def _tiles_a_patch(self) -> int:
        return -(-self._layout.length // OUTPUTS)

    def _values(self, inputs: Rows, space: Workspace) -> Array:
        """Bᵀ d of every tile, (n, n_tiles, in)."""
        n, n_in, _ = self.matrix.shape
        n_rows = len(inputs.inside)
        given = self._tiles(inputs.whole, inputs.margin - self._taps // 2, n, n_rows)
        values = space.array("values", n, given[0].shape[0] * self._tiles_a_patch, n_in)
        expand(self._transforms.inputs, given, self._by_patch(values), space)
        return values

    def _tiles(self, rows: Array, first: int, count: int, n_rows: int) -> list[Array]:
        """Rows first, first + 1, … of every tile: views (n_patches, tiles, width)."""
        pitch, step = self._layout.pitch, rows.strides[0]
        shape = (n_rows // pitch, self._tiles_a_patch, rows.shape[1])
        strides = (pitch * step, OUTPUTS * step, rows.strides[1])
        return [as_strided(rows[first + k :], shape, strides) for k in range(count)]

    def _by_patch(self, values: Array) -> list[Array]:
        """(n, n_tiles, width) as n views (n_patches, tiles, width)."""
        return list(values.reshape(len(values), -1, self._tiles_a_patch, values.shape[2]))


def expand(
    matrix: NDArray[np.float64],  # (n, m)
    given: Sequence[Array],  # m arrays of one shape
    out: Sequence[Array],  # n arrays of that shape
    space: Workspace,
) -> None:
    """out[t] = Σ_k matrix[t, k] · given[k]."""
    even = space.array("even part", *given[0].shape)
    for t in (0, len(matrix) - 1):
        _combine(list(zip(matrix[t], given, strict=True)), out[t], space)
    for t in range(1, len(matrix) - 1, 2):
        terms = list(zip(matrix[t], given, strict=True))
        _combine(terms[::2], even, space)
        _combine(terms[1::2], out[t], space)
        np.subtract(even, out[t], out=out[t + 1])
        out[t] += even


def contract(
    matrix: NDArray[np.float64],  # (n, m)
    given: Sequence[Array],  # n arrays of one shape, overwritten
    out: Sequence[Array],  # m arrays of that shape
    space: Workspace,
) -> None:
    """out[k] = Σ_t matrix[t, k] · given[t]; beyond a tile's length, added to the next tile."""
    spare = space.array("even part", *given[0].shape)
    for t in range(1, len(matrix) - 1, 2):  # sums in the place of t, differences in that of t + 1
        np.subtract(given[t], given[t + 1], out=spare)
        given[t][:] += given[t + 1]
        given[t + 1][:] = spare
    for k in range(matrix.shape[1]):
        odd = k % 2
        terms = [(matrix[t, k], given[t + odd]) for t in range(1, len(matrix) - 1, 2)]
        terms += [(matrix[t, k], given[t]) for t in (0, len(matrix) - 1)]
        if k < OUTPUTS:
            _combine(terms, out[k], space)
        else:
            _combine(terms, spare, space)
            out[k][:] += spare


def _combine(terms: Sequence[tuple[float, Array]], out: Array, space: Workspace) -> None:
    """out = Σ c · array; additions alone where c is ±1."""
    plain = [array for c, array in terms if c == 1]
    scaled = [(c, array) for c, array in terms if c not in (0, 1)]
    if len(plain) > 1:
        np.add(plain.pop(), plain.pop(), out=out)
    elif scaled:
        c, array = scaled.pop()
        np.multiply(array, np.float32(c), out=out)
    else:
        np.copyto(out, plain.pop())
    for array in plain:
        out += array
    spare = space.array("scaled", *out.shape)
    for c, array in scaled:
        if c == -1:
            out -= array
        else:
            np.multiply(array, np.float32(c), out=spare)
            out += spare
