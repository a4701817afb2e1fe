import numpy as np
import pytest
import torch

import naive
from vace_ad.config import VACEConfig
from vace_ad.engine.batch_norm import calibrate
from vace_ad.engine.encoder import convolve, encode, flop_per_patch, init_encoder
from vace_ad.engine.torch import to_module


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
