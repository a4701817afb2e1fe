"""Winograd's convolution against the plain one, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest

from vace_ad.method.convolution import Dense, Layout, Workspace
from vace_ad.method.winograd import OUTPUTS, Winograd, contract, expand, matrices

SIZES = pytest.mark.parametrize(
    ("taps", "length", "n"), [(3, 96, 5), (5, 96, 5), (3, 7, 1), (5, 4, 3), (5, 30, 2), (3, 5, 4)]
)


def make(taps: int, length: int, n: int, n_in: int = 6, n_out: int = 9):
    """Two workspaces, the layers, inputs and slopes with zeros between patches."""
    rng = np.random.default_rng(taps * length)
    kernel = rng.normal(size=(n_out, n_in, taps)).astype(np.float32)
    layout = Layout.of(length, 3)
    space = Workspace()
    rows = []
    for name, width in (("inputs", n_in), ("slope", n_out)):
        made = space.rows(name, n * layout.pitch, width, layout.margin)
        made.inside[:] = 0
        layout.inside(made.inside)[:] = rng.normal(size=(n, length, width))
        rows.append(made)
    return Dense(kernel), Winograd(kernel, layout), rows, layout, space


@pytest.mark.parametrize("taps", [3, 5])
def test_the_matrices_make_a_convolution(taps):
    rng = np.random.default_rng(0)
    found = matrices(taps)
    given, kernel = rng.normal(size=taps + OUTPUTS - 1), rng.normal(size=taps)
    made = found.outputs.T @ ((found.kernel @ kernel) * (found.inputs @ given))
    assert np.allclose(made, [given[i : i + taps] @ kernel for i in range(OUTPUTS)])


@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_expand_and_contract_apply_the_matrices(taps, which):
    rng = np.random.default_rng(0)
    matrix = getattr(matrices(taps), which)
    space = Workspace()
    given = rng.normal(size=(matrix.shape[1], 2, 3, 4)).astype(np.float32)
    wide = np.empty((len(matrix), 2, 3, 4), np.float32)
    expand(matrix, list(given), list(wide), space)
    assert np.allclose(wide, np.tensordot(matrix, given, 1), atol=1e-4)
    back = np.zeros_like(given)
    wanted = np.tensordot(matrix.T, wide, 1)
    contract(matrix, list(wide), list(back), space)
    assert np.allclose(back, wanted, rtol=1e-4, atol=1e-3)


@SIZES
def test_forward(taps, length, n):
    plain, quick, (inputs, _), layout, space = make(taps, length, n)
    wanted, found = (np.full((n * layout.pitch, 9), np.nan, np.float32) for _ in range(2))
    plain.forward(inputs, wanted, space)
    quick.forward(inputs, found, space)
    assert np.abs(layout.inside(found) - layout.inside(wanted)).max() < 1e-4
    assert np.isfinite(found).all()


@SIZES
def test_backward(taps, length, n):
    plain, quick, (inputs, slope), layout, space = make(taps, length, n)
    kernels, reached = [], []
    for layer in (plain, quick):
        total = np.zeros_like(layer.matrix)
        for _ in range(2):  # totals add up
            layer.to_matrix(inputs, slope, total, space)
        kernels.append(layer.to_kernel(total))
        reached.append(layout.inside(layer.to_inputs(slope, space)).copy())
    assert np.abs(kernels[1] - kernels[0]).max() < 1e-5 * np.abs(kernels[0]).max()
    assert np.abs(reached[1] - reached[0]).max() < 1e-4


def test_wide_channels_lose_little():
    """At the encoder's own widths the error stays near float32's."""
    plain, quick, (inputs, _), layout, space = make(5, 96, 2, 128, 256)
    wanted, found = (np.empty((2 * layout.pitch, 256), np.float32) for _ in range(2))
    plain.forward(inputs, wanted, space)
    quick.forward(inputs, found, space)
    error = np.abs(layout.inside(found) - layout.inside(wanted)).max()
    assert error < 1e-5 * np.abs(layout.inside(wanted)).max()
