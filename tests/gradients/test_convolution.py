"""Convolutions by matrix products, plain and Winograd's, against loops over taps."""

from __future__ import annotations

import numpy as np
import pytest

from vace_ad.gradients.convolution import (
    PHASES,
    First,
    Layout,
    Pointwise,
    Workspace,
    windows,
)
from vace_ad.gradients.winograd import POINTS, Winograd, matrices

LENGTHS = pytest.mark.parametrize(("length", "n"), [(96, 5), (7, 1), (4, 3), (30, 2), (5, 4)])


def correlate(series, kernel):
    """Same-padded convolution of (n, P, in) with (out, in, taps), tap by tap, in float64."""
    taps = kernel.shape[2]
    pad = taps // 2
    padded = np.pad(series.astype(float), ((0, 0), (pad, pad), (0, 0)))
    length = series.shape[1]
    return sum(padded[:, j : j + length] @ kernel[:, :, j].T.astype(float) for j in range(taps))


def gradients(series, slope, kernel):
    """Gradients of Σ slope · correlate(series) in the series and in the kernel."""
    taps, length = kernel.shape[2], series.shape[1]
    pad = taps // 2
    padded = np.pad(series.astype(float), ((0, 0), (pad, pad), (0, 0)))
    to_padded, to_kernel = np.zeros_like(padded), np.zeros(kernel.shape)
    for j in range(taps):
        to_padded[:, j : j + length] += slope @ kernel[:, :, j].astype(float)
        to_kernel[:, :, j] = np.einsum("npo,npi->oi", slope, padded[:, j : j + length])
    return to_padded[:, pad : pad + length], to_kernel


def to_phases(series, layout):
    """(n, P, width) as (PHASES, n · tiles, width), zero after a patch's end."""
    n, length, width = series.shape
    rows = np.zeros((n, layout.rows, width), np.float32)
    rows[:, :length] = series
    tiles = rows.reshape(n * layout.tiles, PHASES, width)
    return np.ascontiguousarray(tiles.transpose(1, 0, 2))


def from_phases(block, layout):
    """The inverse of `to_phases`."""
    rows = block.transpose(1, 0, 2).reshape(-1, layout.rows, block.shape[2])
    return rows[:, : layout.length]


@pytest.mark.parametrize("taps", sorted(POINTS))
def test_the_matrices_make_a_convolution(taps):
    rng = np.random.default_rng(0)
    found = matrices(taps)
    given, kernel = rng.normal(size=taps + PHASES - 1), rng.normal(size=taps)
    made = found.outputs.T @ ((found.kernel @ kernel) * (found.inputs @ given))
    wanted = [given[i : i + taps] @ kernel for i in range(PHASES)]
    assert np.allclose(made, wanted, atol=1e-5)


@LENGTHS
@pytest.mark.parametrize("taps", [1, 3, 5])
def test_forward_and_backward(taps, length, n):
    rng = np.random.default_rng(taps * length)
    kernel = rng.normal(size=(9, 6, taps)).astype(np.float32)
    series, slope = rng.normal(size=(n, length, 6)), rng.normal(size=(n, length, 9))
    layout, space = Layout(length), Workspace()
    layer = Pointwise(kernel) if taps == 1 else Winograd(kernel, layout)
    slots = np.full((layer.slots, n * layout.tiles, 6), np.nan, np.float32)
    slots[layer.lead : layer.lead + PHASES] = to_phases(series, layout)
    out = np.full((PHASES, n * layout.tiles, 9), np.nan, np.float32)
    layer.forward(slots, out, space)
    assert np.abs(from_phases(out, layout) - correlate(series, kernel)).max() < 1e-4
    assert np.isfinite(out).all()

    total = np.zeros_like(layer.matrix)
    for _ in range(2):  # totals add up
        layer.to_matrix(slots, to_phases(slope, layout), total, space)
    reached = from_phases(layer.to_inputs(to_phases(slope, layout), space), layout)
    to_series, to_kernel = gradients(series, slope, kernel)
    assert np.abs(reached - to_series).max() < 1e-4
    assert np.abs(layer.to_kernel(total) - 2 * to_kernel).max() < 1e-5 * np.abs(to_kernel).max()


@LENGTHS
@pytest.mark.parametrize("groups", [1, 3])
def test_the_first_stage(groups, length, n):
    rng = np.random.default_rng(length)
    kernel = rng.normal(size=(6, 3 // groups, 7)).astype(np.float32)
    patches = rng.normal(size=(n, 3, length)).astype(np.float32)
    slope = rng.normal(size=(n, length, 6))
    layout, space = Layout(length), Workspace()
    dense = np.zeros((6, 3, 7), np.float32)  # the same kernel without groups
    for out in range(6):
        own = [out // 2] if groups == 3 else [0, 1, 2]
        dense[out, own] = kernel[out]
    layer = First(kernel, groups)
    seen = windows(patches, 7, layout, space)
    out = np.empty((PHASES, n * layout.tiles, 6), np.float32)
    layer.forward(seen, out, space)
    series = patches.transpose(0, 2, 1)
    assert np.abs(from_phases(out, layout) - correlate(series, dense)).max() < 1e-4
    total = np.zeros_like(layer.matrix)
    layer.to_matrix(seen, to_phases(slope, layout), total, space)
    _, to_dense = gradients(series, slope, dense)
    wanted = np.stack([to_dense[o, [o // 2] if groups == 3 else [0, 1, 2]] for o in range(6)])
    assert np.abs(layer.to_kernel(total) - wanted).max() < 1e-4


def test_winograd_loses_little_at_the_widths_of_the_paper():
    rng = np.random.default_rng(0)
    kernel = (rng.uniform(-1, 1, (256, 128, 5)) / np.sqrt(640)).astype(np.float32)
    series = np.maximum(rng.normal(size=(2, 96, 128)), 0)
    layout, space = Layout(96), Workspace()
    layer = Winograd(kernel, layout)
    slots = np.empty((layer.slots, 2 * layout.tiles, 128), np.float32)
    slots[layer.lead : layer.lead + PHASES] = to_phases(series, layout)
    out = np.empty((PHASES, 2 * layout.tiles, 256), np.float32)
    layer.forward(slots, out, space)
    wanted = correlate(series, kernel)
    assert np.abs(from_phases(out, layout) - wanted).max() < 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("lead", [1, 2])
@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_gather_back_is_the_adjoint_of_surround(lead, tiles):
    rng = np.random.default_rng(0)
    layout = Layout(tiles * PHASES)
    slots, slopes = rng.normal(size=(2, PHASES + 2 * lead, 3 * tiles, 4))
    phases = slots[lead : lead + PHASES].copy()
    layout.surround(slots, lead)
    product = (slots * slopes).sum()
    assert product == pytest.approx((phases * layout.gather_back(slopes, lead)).sum())
