"""Calibration works on shares of channels and blocks of patches; neither may show."""

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

import naive
from vace_ad.config import VACEConfig
from vace_ad.engine import encoder as encoders
from vace_ad.engine.encoder import (
    Moments,
    calibrate,
    convolve,
    encode,
    flop_per_patch,
    init_encoder,
)
from vace_ad.engine.torch import to_module

WIDTHS = (16, 12, 8, 6)


def norms(encoder):
    return [array for stage in encoder for array in vars(stage.norm).values()]


@pytest.mark.parametrize("kind", ["channel", "shared"])
@pytest.mark.parametrize("n_channels", [1, 5])
def test_shares_of_channels_and_blocks_change_only_rounding(rng, monkeypatch, kind, n_channels):
    config = VACEConfig.from_preset(None, widths=WIDTHS, encoder=kind)
    encoder = init_encoder(config, n_channels, rng)
    patches = rng.normal(1, 2, size=(40, n_channels, 24)).astype(np.float32)
    whole = calibrate(encoder, patches, 0.9)
    monkeypatch.setattr(encoders, "VALUES", 2 * 40 * 24 * 8)  # two channels a share
    monkeypatch.setattr(encoders, "BLOCK", 7)
    shared = calibrate(encoder, patches, 0.9)
    for stage, other in zip(whole, shared, strict=True):
        assert stage.groups == other.groups
        assert np.array_equal(stage.kernel, other.kernel)
    for array, other in zip(norms(whole), norms(shared), strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-5, atol=1e-5)


def test_threads_do_not_change_a_bit(rng, monkeypatch):
    monkeypatch.setattr(encoders, "VALUES", 1)
    encoder = init_encoder(VACEConfig.from_preset(None, widths=WIDTHS), 4, rng)
    patches = rng.normal(size=(60, 4, 24)).astype(np.float32)
    many = calibrate(encoder, patches, 0.9)
    with threadpool_limits(1):
        one = calibrate(encoder, patches, 0.9)
    assert all(np.array_equal(a, b) for a, b in zip(norms(many), norms(one), strict=True))


def test_moments_of_parts_are_those_of_the_whole(rng):
    blocks = [rng.normal(30, 2, size=(n, 10, 3)).astype(np.float32) for n in (4, 1, 9)]
    found = Moments.joined([Moments.of(block) for block in blocks])
    rows = np.concatenate(blocks).reshape(-1, 3).astype(np.float64)
    assert found.n == len(rows)
    np.testing.assert_allclose(found.mean, rows.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.squares / found.n, rows.var(axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("n_in", "n_out", "taps", "groups"), [(3, 6, 7, 3), (4, 5, 3, 1), (2, 3, 1, 1), (1, 4, 5, 1)]
)
def test_convolution_equals_loops(rng, n_in, n_out, taps, groups):
    patches = rng.normal(size=(2, n_in, 10)).astype(np.float32)
    kernel = rng.normal(size=(n_out, n_in // groups, taps)).astype(np.float32)
    got = convolve(patches.transpose(0, 2, 1), kernel, groups).transpose(0, 2, 1)
    expected = [naive.convolve(patch, kernel, groups) for patch in patches]
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_shapes_follow_the_paper(rng):
    encoder = init_encoder(VACEConfig.from_preset(None, widths=(128, 256, 128, 64)), 5, rng)
    shapes = [stage.kernel.shape for stage in encoder]
    assert shapes == [(40, 1, 7), (128, 40, 1), (256, 128, 5), (128, 256, 3), (64, 128, 3)]
    per_patch = 27.5e6 * 2 + 0.2e6 * 5
    assert flop_per_patch([encoder], 96) == pytest.approx(per_patch, rel=0.01)


def test_the_shared_kernel_replaces_the_first_two_stages(rng):
    encoder = init_encoder(
        VACEConfig.from_preset(None, encoder="shared", widths=(128, 256, 128, 64)), 5, rng
    )
    assert encoder[0].kernel.shape == (128, 5, 7)
    assert len(encoder) == 4


def test_calibration_blends_the_statistics_of_each_layer_in_turn(rng):
    encoder = init_encoder(VACEConfig.from_preset(None, widths=(16, 12, 8, 6)), 3, rng)
    patches = rng.normal(size=(40, 3, 24)).astype(np.float32)
    plain = naive.torch_encoder(3, widths=(16, 12, 8, 6)).eval()
    convolutions = [layer for layer in plain if isinstance(layer, torch.nn.Conv1d)]
    norms = [layer for layer in plain if isinstance(layer, torch.nn.BatchNorm1d)]
    for layer, stage in zip(convolutions, encoder, strict=True):
        layer.weight.data = torch.from_numpy(stage.kernel)
    hidden = torch.from_numpy(patches)
    with torch.no_grad():
        for layer in plain:
            if isinstance(layer, torch.nn.BatchNorm1d):
                mean, var = hidden.mean(dim=(0, 2)), hidden.var(dim=(0, 2), correction=0)
                layer.running_mean, layer.running_var = 0.88 * mean, 0.12 + 0.88 * var
            hidden = layer(hidden)
    calibrated = calibrate(encoder, patches, 0.88)
    for stage, norm in zip(calibrated, norms, strict=True):
        np.testing.assert_allclose(stage.norm.mean, norm.running_mean, atol=1e-5)
        np.testing.assert_allclose(stage.norm.var, norm.running_var, rtol=1e-5)
    wanted = hidden.mean(dim=2).numpy()
    np.testing.assert_allclose(encode(calibrated, patches), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_norm", [True, False])
def test_folding_changes_nothing(rng, batch_norm):
    config = VACEConfig.from_preset(None, widths=(16, 12, 8, 6), batch_norm=batch_norm)
    encoder = init_encoder(config, 4, rng)
    patches = rng.normal(size=(9, 4, 32)).astype(np.float32)
    encoder = calibrate(encoder, patches, 0.95)
    with torch.no_grad():
        plain = to_module(encoder, "cpu").eval()(torch.from_numpy(patches)).numpy()
    np.testing.assert_allclose(encode(encoder, patches), plain, atol=1e-5)
