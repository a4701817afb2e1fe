"""What a fit learns about shape, step by step."""

import numpy as np
import pytest

from vace_ad.config import VACEConfig
from vace_ad.engine import make_engine
from vace_ad.engine.encoder import calibrate, init_encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.errors import VaceWarning
from vace_ad.signals.shape.fit import (
    calibrated,
    embed_training,
    encoder_rngs,
    learn_encoder,
    learn_statistics,
)

SMALL = {"patch_length": 16, "widths": (6, 8, 8, 5), "channel_expansion": 2, "engine": "numpy"}


def make(n_rows=600, **settings):
    rng = np.random.default_rng(0)
    config = VACEConfig.from_preset(None, **{**SMALL, **settings})
    rows = np.sin(np.arange(n_rows)[:, None] / [4, 7]) + 0.1 * rng.normal(size=(n_rows, 2))
    return PatchSet([rows], config.patch_length, np.ones(2)), config


def same(a, b):
    return all(np.array_equal(x.kernel, y.kernel) for x, y in zip(a, b, strict=True))


def test_more_encoders_leave_the_first_ones_as_they_are():
    patches, config = make(encoders=2)
    few = [learn_encoder(patches, config, rng)[0] for rng in encoder_rngs(config)]
    _, more = make(encoders=4)
    many = [learn_encoder(patches, more, rng)[0] for rng in encoder_rngs(more)]
    assert same(few[0], many[0])
    assert same(few[1], many[1])
    assert not same(many[0], many[1])


def test_calibration_takes_evenly_spaced_patches():
    patches, config = make()
    start = init_encoder(config, 2, np.random.default_rng(1))
    chosen = np.linspace(0, len(patches) - 1, 256).astype(np.intp)
    wanted = calibrate(start, patches.gather(chosen), 0.7)
    for found, stage in zip(calibrated(start, patches, 0.7), wanted, strict=True):
        assert np.array_equal(found.norm.mean, stage.norm.mean)
        assert np.array_equal(found.norm.var, stage.norm.var)


def test_training_patches_are_few_and_have_their_neighbours():
    patches, config = make(max_fit_patches=150, encoders=2)
    encoders = [learn_encoder(patches, config, rng)[0] for rng in encoder_rngs(config)]
    embedded = embed_training(make_engine(encoders, 2, config), patches, config)
    assert len(embedded.numbers) <= 150
    assert config.offset % embedded.stride == 0
    assert embedded.embeddings.shape == (len(embedded.numbers), 2, 5)


def test_statistics_without_a_block_do_not_know_its_patches():
    """A block that moved far away is far from what the other blocks taught."""
    patches, config = make(encoders=1, direction=False, max_fit_patches=100)
    (rng,) = encoder_rngs(config)
    encoder, _ = learn_encoder(patches, config, rng)
    embedded = embed_training(make_engine([encoder], 2, config), patches, config)
    last = len(embedded.numbers) * 3 // 4 + 1
    embedded.embeddings[last:] += 5
    learned = learn_statistics(embedded, patches, config, [0])
    (evidence,) = learned.encoders
    (unknowing,) = learned.without[3]
    moved = embedded.embeddings[last:, 0]
    assert unknowing.position.score(moved).min() > 10 * evidence.position.score(moved).max()
    assert unknowing.position_unit == evidence.position_unit


def test_without_a_triple_a_warning_says_what_is_not_trained():
    patches, config = make(n_rows=40, iterations=2, pretext_offset=30, encoders=1)
    (rng,) = encoder_rngs(config)
    with pytest.warns(VaceWarning, match="nothing is trained but BatchNorm"):
        _, losses = learn_encoder(patches, config, rng)
    assert np.isnan(losses).all()
