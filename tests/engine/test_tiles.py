"""Embeddings by tiles against the plain NumPy encoder."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from vace_ad.config import VACEConfig
from vace_ad.engine.tiles import TilesEngine
from vace_ad.method.encoder import calibrate, encode, init_encoder


def make(n: int, n_channels: int, **settings):
    rng = np.random.default_rng(n)
    config = VACEConfig(**{"widths": (128, 256, 128, 64), "encoders": 2, **settings})
    patches = rng.normal(size=(n, n_channels, config.patch_length)).cumsum(axis=2)
    patches -= patches.mean(axis=2, keepdims=True)
    patches = (patches / patches.std(axis=2, keepdims=True)).astype(np.float32)
    encoders = [init_encoder(config, n_channels, rng) for _ in range(config.encoders)]
    if config.batch_norm:
        encoders = [calibrate(encoder, patches, 0.95) for encoder in encoders]
    return encoders, patches


@pytest.mark.parametrize(
    ("n", "n_channels", "settings"),
    [
        (40, 3, {}),
        (1, 1, {}),
        (17, 2, {"encoder": "shared"}),
        (20, 4, {"batch_norm": False}),
        (20, 3, {"patch_length": 32, "widths": (9, 7, 5, 3), "stride": 16}),
        (20, 3, {"patch_length": 34, "widths": (9, 7, 5, 3), "stride": 17, "fit_stride": 1}),
    ],
)
def test_embeddings_are_those_of_the_plain_encoder(n, n_channels, settings):
    encoders, patches = make(n, n_channels, **settings)
    found = TilesEngine(encoders, patches.shape[2]).embed(patches)
    wanted = np.stack([encode(encoder, patches) for encoder in encoders], axis=1)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() < 1e-5 * max(1, np.abs(wanted).max())


def test_threads_and_earlier_calls_do_not_change_a_bit():
    encoders, patches = make(70, 5)
    engine = TilesEngine(encoders, 96)
    wanted = engine.embed(patches)
    engine.embed(-patches[:9])
    assert np.array_equal(engine.embed(patches), wanted)
    with threadpool_limits(1):
        assert np.array_equal(TilesEngine(encoders, 96).embed(patches), wanted)
