"""The pretext: triples, schedule, and training equal to the plain module's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from vace_ad.config import VACEConfig
from vace_ad.engine.encoder import encode, init_encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.torch import to_module
from vace_ad.gradients.adamw import AdamW
from vace_ad.gradients.backprop import Gradients
from vace_ad.training.pretext import (
    ZEROS,
    Triples,
    anchor_batches,
    gather,
    has_triples,
    learning_rate,
    loss_weight,
    run,
    train,
    velocity_loss,
)
from vace_ad.training.pretext_torch import TorchLearner

SMALL = {
    "patch_length": 16,
    "widths": (12, 20, 10, 6),
    "channel_expansion": 3,
    "batch_size": 32,
    "pretext_offset": 16,
    "stride": 1,
    "fit_stride": 1,
}


@pytest.fixture(autouse=True)
def one_torch_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(preset: str, n_rows: int = 150, seed: int = 0, **settings):
    rng = np.random.default_rng(seed)
    config = VACEConfig.from_preset(preset, **{**SMALL, **settings})
    series = rng.normal(size=(n_rows, 3)).cumsum(axis=0)
    patches = PatchSet([series], config.patch_length, np.ones(3))
    return init_encoder(config, 3, rng), patches, config


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_training_equals_the_plain_module(preset):
    encoder, patches, config = make(preset)
    found = train(encoder, patches, config, np.random.default_rng(1))
    learner = TorchLearner(encoder, patches, config)
    wanted = run(learner, patches, config, np.random.default_rng(1))
    assert np.allclose(found.losses, wanted.losses, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(found.encoder, wanted.encoder, strict=True):
        assert np.abs(ours.kernel - theirs.kernel).max() < 2e-5  # steps are up to 1e-4, 20 times
        for name in ("gamma", "beta"):
            assert np.abs(getattr(ours.norm, name) - getattr(theirs.norm, name)).max() < 2e-5
        for name in ("mean", "var"):
            assert np.allclose(getattr(ours.norm, name), getattr(theirs.norm, name), atol=1e-4)
    sample = patches.gather(np.arange(len(patches)))
    assert np.abs(encode(found.encoder, sample) - encode(wanted.encoder, sample)).max() < 1e-4


def test_where_nothing_moves_there_is_no_direction():
    """Equal patches must have equal embeddings, or their velocity is rounding, normalised."""
    encoder, _, config = make("released", iterations=1, batch_size=128)
    still = np.repeat(np.random.default_rng(3).normal(size=(3, 3)), [150, 16, 150], axis=0)
    patches = PatchSet([still], config.patch_length, np.ones(3))
    found = train(encoder, patches, config, np.random.default_rng(1))
    anchors = next(anchor_batches(patches, config, np.random.default_rng(1)))
    triples = Triples.of(anchors, patches, config.training_offset)
    batch = torch.from_numpy(gather(patches, triples.rows.ravel())).double()
    z = to_module(encoder, "cpu").double().train()(batch).detach().numpy()
    wanted, _ = velocity_loss(z.reshape(3, len(anchors), -1), triples.whole)
    assert found.losses == pytest.approx([wanted], abs=1e-4)


@pytest.mark.parametrize("settings", [{"batch_norm": False}, {"encoder": "shared"}])
def test_ablations_equal_the_plain_module(settings):
    if "batch_norm" in settings:
        settings = {**settings, "batch_norm_statistics": "calibrated"}
    encoder, patches, config = make("released", iterations=5, **settings)
    found = train(encoder, patches, config, np.random.default_rng(1))
    learner = TorchLearner(encoder, patches, config)
    wanted = run(learner, patches, config, np.random.default_rng(1))
    assert np.allclose(found.losses, wanted.losses, rtol=1e-4)
    for ours, theirs in zip(found.encoder, wanted.encoder, strict=True):
        # AdamW makes a whole step of the rounding where a gradient is nearly zero.
        assert np.quantile(np.abs(ours.kernel - theirs.kernel), 0.99) < 2e-6


def test_the_same_seed_gives_the_same_bits_whatever_the_threads():
    encoder, patches, config = make("released", n_rows=400, iterations=3, batch_size=128)
    with threadpool_limits(1):
        one = train(encoder, patches, config, np.random.default_rng(1))
    two = train(encoder, patches, config, np.random.default_rng(1))
    assert one.losses == two.losses
    for a, b in zip(one.encoder, two.encoder, strict=True):
        assert np.array_equal(a.kernel, b.kernel)
        assert np.array_equal(a.norm.var, b.norm.var)


def test_without_a_whole_triple_only_batch_norm_learns():
    encoder, patches, config = make("released", n_rows=40)
    assert not has_triples(patches, config)
    trained = train(encoder, patches, config, np.random.default_rng(0))
    assert all(math.isnan(loss) for loss in trained.losses)
    for before, after in zip(encoder, trained.encoder, strict=True):
        assert np.array_equal(before.kernel, after.kernel)
        assert not np.array_equal(before.norm.var, after.norm.var)


def test_the_ablation_without_pretext_keeps_the_first_state():
    encoder, patches, config = make("released", pretext=False)
    trained = train(encoder, patches, config, np.random.default_rng(0))
    once = train(
        encoder,
        patches,
        VACEConfig.from_preset("released", **SMALL, pretext=False, iterations=1),
        np.random.default_rng(0),
    )
    for a, b in zip(trained.encoder, once.encoder, strict=True):
        assert np.array_equal(a.kernel, b.kernel)
        assert np.array_equal(a.norm.mean, b.norm.mean)


def test_triples_stop_at_borders():
    rows = np.arange(60.0)[:, None]
    patches = PatchSet([rows[:30], rows[30:]], 10, np.ones(1))  # 21 patches each
    triples = Triples.of(np.array([0, 10, 15, 25, 41]), patches, 8)
    assert triples.rows[1].tolist() == [ZEROS, 2, 7, ZEROS, 33]
    assert triples.rows[2].tolist() == [8, 18, ZEROS, 33, ZEROS]
    assert triples.whole.tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("moving", [True, False])
def test_velocity_loss_is_that_of_autograd(moving):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3, 9, 5))
    if not moving:
        z[1, 2] = z[0, 2]  # a velocity of length 0, and one shorter than ε
        z[2, 3] = z[0, 3] + 1e-10
    z = z.astype(np.float32)
    whole = np.array([True] * 7 + [False] * 2)
    loss, slopes = velocity_loss(z, whole)
    leaf = torch.from_numpy(z).double().requires_grad_()
    anchor, before, after = leaf
    back, forth = (
        move / move.norm(dim=1, keepdim=True).clamp_min(1e-8)
        for move in (anchor - before, after - anchor)
    )
    wanted = (1 - (back * forth).sum(dim=1))[torch.from_numpy(whole)].mean()
    wanted.backward()
    assert loss == pytest.approx(float(wanted.detach()), rel=1e-12)
    assert np.allclose(slopes, leaf.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_adamw_is_that_of_torch():
    rng = np.random.default_rng(0)
    encoder = init_encoder(VACEConfig.from_preset(None, **SMALL, iterations=1), 2, rng)
    ours, optimiser = encoder, AdamW(0.01)
    tensors = [
        torch.nn.Parameter(torch.from_numpy(value.copy()))
        for stage in encoder
        for value in (stage.kernel, stage.norm.gamma, stage.norm.beta)
    ]
    theirs = torch.optim.AdamW(tensors, lr=1.0, weight_decay=0.01)
    for rate in (1e-2, 3e-3, 1e-3):
        gradients = [
            Gradients(*(rng.normal(size=p.shape).astype(np.float32) for p in tensors[i : i + 3]))
            for i in range(0, len(tensors), 3)
        ]
        for tensor, gradient in zip(
            tensors, (g for found in gradients for g in found), strict=True
        ):
            tensor.grad = torch.from_numpy(gradient)
        theirs.param_groups[0]["lr"] = rate
        theirs.step()
        ours = optimiser.step(ours, gradients, rate)
    moved = [v for s in ours for v in (s.kernel, s.norm.gamma, s.norm.beta)]
    for value, tensor in zip(moved, tensors, strict=True):
        assert np.abs(value - tensor.detach().numpy()).max() < 1e-6


def test_schedule():
    released = VACEConfig.from_preset("released")
    assert loss_weight(0, released) == pytest.approx(0.95)
    assert loss_weight(19, released) == 0
    assert loss_weight(0, VACEConfig.from_preset("paper")) == 1
    assert learning_rate(0, released) == pytest.approx(1e-4)
    assert learning_rate(10, released) == pytest.approx(5.5e-5)


def test_anchors_come_in_shuffled_passes():
    _, patches, config = make("released")
    batches = anchor_batches(patches, config, np.random.default_rng(0))
    one_pass = np.concatenate([next(batches) for _ in range(len(patches) // 32)])
    assert len(np.unique(one_pass)) == len(one_pass)
    _, patches, config = make("paper")
    anchors = next(anchor_batches(patches, config, np.random.default_rng(0)))
    assert Triples.of(anchors, patches, config.training_offset).whole.all()
