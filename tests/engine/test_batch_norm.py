"""Calibration works on shares of channels and blocks of patches; neither may show."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from vace_ad.config import VACEConfig
from vace_ad.engine import batch_norm
from vace_ad.engine.batch_norm import Moments, calibrate
from vace_ad.engine.encoder import init_encoder

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
    monkeypatch.setattr(batch_norm, "VALUES", 2 * 40 * 24 * 8)  # two channels a share
    monkeypatch.setattr(batch_norm, "BLOCK", 7)
    shared = calibrate(encoder, patches, 0.9)
    for stage, other in zip(whole, shared, strict=True):
        assert stage.groups == other.groups
        assert np.array_equal(stage.kernel, other.kernel)
    for array, other in zip(norms(whole), norms(shared), strict=True):
        np.testing.assert_allclose(array, other, rtol=1e-5, atol=1e-5)


def test_threads_do_not_change_a_bit(rng, monkeypatch):
    monkeypatch.setattr(batch_norm, "VALUES", 1)
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
