"""The pretext: triples, schedule, loss and training."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import torch

from vace_ad.config import VACEConfig
from vace_ad.engine.encoder import init_encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.torch import to_module
from vace_ad.errors import MissingExtraError
from vace_ad.signals.shape.pretext import (
    ZEROS,
    Triples,
    _AdamW,
    anchor_batches,
    gather,
    has_triples,
    learning_rate,
    loss_weight,
    train,
)

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
def test_the_first_loss_equals_loops_and_training_lowers_it(preset):
    encoder, patches, config = make(preset, iterations=30, learning_rate=3e-3)
    found = train(encoder, patches, config, np.random.default_rng(1))
    anchors = next(anchor_batches(patches, config, np.random.default_rng(1)))
    triples = Triples.of(anchors, patches, config.training_offset)
    batch = torch.from_numpy(gather(patches, triples.rows.ravel())).double()
    z = to_module(encoder, "cpu").double().train()(batch).detach().numpy().reshape(3, 32, -1)
    terms = []
    for k in np.flatnonzero(triples.whole):
        came, goes = z[0, k] - z[1, k], z[2, k] - z[0, k]
        terms.append(1 - came @ goes / np.linalg.norm(came) / np.linalg.norm(goes))
    assert found.losses[0] == pytest.approx(np.mean(terms), abs=1e-4)
    assert np.mean(found.losses[-5:]) < np.mean(found.losses[:5])


@pytest.mark.parametrize("settings", [{"batch_norm": False}, {"encoder": "shared"}])
def test_ablations_are_trained(settings):
    if "batch_norm" in settings:
        settings = {**settings, "batch_norm_statistics": "calibrated"}
    encoder, patches, config = make("released", iterations=3, **settings)
    found = train(encoder, patches, config, np.random.default_rng(1))
    for before, after in zip(encoder, found.encoder, strict=True):
        assert before.kernel.shape == after.kernel.shape
        assert not np.array_equal(before.kernel, after.kernel)


def test_the_same_seed_gives_the_same_bits():
    encoder, patches, config = make("released", iterations=3)
    one, two = (train(encoder, patches, config, np.random.default_rng(1)) for _ in range(2))
    assert one.losses == two.losses
    for a, b in zip(one.encoder, two.encoder, strict=True):
        assert np.array_equal(a.kernel, b.kernel)
        assert np.array_equal(a.norm.var, b.norm.var)


def test_without_torch_the_install_line_is_named(monkeypatch):
    encoder, patches, config = make("released", iterations=1)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vace-ad\[paper\]'"):
        train(encoder, patches, config, np.random.default_rng(1))


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


def test_steps_of_the_optimiser_against_its_formulas():
    """Moments of the gradients, unbiased; the decay of the weights is apart from them."""
    rng = np.random.default_rng(3)
    module = torch.nn.Linear(3, 2).double()
    optimiser = _AdamW(module, 0.1)
    found = dict(module.named_parameters())
    wanted = {name: one.detach().numpy().copy() for name, one in found.items()}
    means = {name: np.zeros(one.shape) for name, one in wanted.items()}
    squares = {name: np.zeros(one.shape) for name, one in wanted.items()}
    for step, rate in enumerate((0.1, 0.05, 0.01), 1):
        for name, one in found.items():
            gradient = rng.normal(size=one.shape)
            one.grad = torch.from_numpy(gradient)
            means[name] = 0.9 * means[name] + 0.1 * gradient
            squares[name] = 0.999 * squares[name] + 0.001 * gradient**2
            mean, square = means[name] / (1 - 0.9**step), squares[name] / (1 - 0.999**step)
            wanted[name] *= 1 - rate * 0.1
            wanted[name] -= rate * mean / (np.sqrt(square) + 1e-8)
        optimiser.step(rate)
        for name, one in found.items():
            np.testing.assert_allclose(one.detach().numpy(), wanted[name], rtol=1e-7)
    before = module.weight.detach().clone()
    module.zero_grad()
    module.bias.grad = torch.ones(2, dtype=torch.float64)
    optimiser.step(0.1)  # weights without a gradient stay
    assert torch.equal(module.weight, before)


def test_training_does_without_torchs_compiler():
    """Its import takes seconds, in every process that trains."""
    if "torch._dynamo" in sys.modules:
        pytest.skip("another test of this process has imported it")
    encoder, patches, config = make("paper", iterations=2)
    train(encoder, patches, config, np.random.default_rng(0))
    assert "torch._dynamo" not in sys.modules
