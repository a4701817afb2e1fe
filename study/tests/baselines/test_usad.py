import numpy as np
import pytest

from baselines.planted import contrast, planted

torch = pytest.importorskip("torch")

from vace_study.baselines import resolve  # noqa: E402
from vace_study.baselines.networks.training import At  # noqa: E402
from vace_study.baselines.usad import USAD  # noqa: E402


def test_the_adversarial_terms_cancel_with_one_optimiser():
    detector = USAD(window=10)
    module, batch = detector._module(2), torch.rand(4, 10, 2)
    for epoch in (1, 7):
        both = detector._losses(module, batch, At(epoch, 0))
        errors = module(batch)
        plain = (errors.first.mean() + errors.second.mean()) / (epoch + 1)
        assert both.tolist() == pytest.approx(plain.tolist(), rel=1e-5)
        gradients = [torch.autograd.grad(loss, list(module.parameters())) for loss in (both, plain)]
        for one, other in zip(*gradients, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-7)


def test_early_stopping_watches_the_sum_of_both_losses():
    train, _ = planted()
    detector = USAD(window=20).fit(train)
    assert {len(losses) for losses in detector.history_} == {1}
    assert len(detector.history_) == 10  # 1/n alone lets the sum fall in every epoch


def test_two_optimisers_train_something_else():
    train, table = planted()
    scores = [USAD(optimisers=n, epochs=3, window=20).fit(train).score(table) for n in (1, 2)]
    assert not np.allclose(*scores)


def test_errors_by_hand():
    module, batch = USAD(window=6)._module(2), torch.rand(3, 6, 2)
    flat = batch.reshape(3, 12)
    decoded = module.first(module.encoder(flat))
    again = module.second(module.encoder(decoded))
    expected = 0.1 * ((decoded - flat) ** 2).mean(1) + 0.9 * ((again - flat) ** 2).mean(1)
    found = USAD(window=6)._errors(module, batch, At(0, 0))
    np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-6)
    assert module.encoder(flat).min() >= 0  # the latent is a ReLU's too


@pytest.mark.parametrize("channels", [1, 38, 500])
def test_weights(channels):
    n = 100 * channels
    inner = 16 * 16 + 16 + 16 * 5 + 5, 5 * 16 + 16 + 16 * 16 + 16
    expected = (16 * n + 16 + inner[0]) + 2 * (inner[1] + 16 * n + n)
    assert sum(p.numel() for p in USAD()._module(channels).parameters()) == expected


@pytest.mark.parametrize(("name", "early"), [("usad", 50), ("usad-current", 0)])
def test_a_planted_anomaly_is_found(name, early):
    train, table = planted()
    assert contrast(resolve(name).make(0).fit(train).score(table), early) > 2


def test_five_hundred_channels():
    train, table = planted(channels=500)
    scores = USAD(epochs=1, max_train_windows=64).fit(train).score(table)
    assert contrast(scores, early=50) > 1.5
