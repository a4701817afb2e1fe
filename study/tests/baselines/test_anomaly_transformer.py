import math

import numpy as np
import pytest

from baselines.planted import contrast, planted

torch = pytest.importorskip("torch")

from vace_study.baselines import resolve  # noqa: E402
from vace_study.baselines.anomaly_transformer import AnomalyTransformer  # noqa: E402
from vace_study.baselines.modules.anomaly_transformer import AnomalyAttention  # noqa: E402
from vace_study.baselines.networks.training import At  # noqa: E402

SMALL = {"width": 16, "heads": 2, "layers": 2, "hidden": 16}


def test_weights_are_as_many_as_published():
    module = AnomalyTransformer()._module(38)
    assert sum(p.numel() for p in module.parameters()) == pytest.approx(4.83e6, abs=5e3)


def test_the_maps_by_loop():
    torch.manual_seed(0)
    attention, x = AnomalyAttention(8, 2), torch.randn(1, 5, 8)
    with torch.no_grad():
        _, maps = attention(x)
        query, key = attention.query(x)[0].numpy(), attention.key(x)[0].numpy()
        sigma = attention.sigma(x)[0].numpy()
    for head in range(2):
        own = slice(4 * head, 4 * head + 4)
        for i in range(5):
            logits = np.array([query[i, own] @ key[j, own] / 2 for j in range(5)])
            series = np.exp(logits) / np.exp(logits).sum()
            np.testing.assert_allclose(maps.series[0, head, i], series, atol=1e-6)
            width = 3 ** (1 / (1 + math.exp(-5 * sigma[i, head])) + 1e-5) - 1
            density = np.array([math.exp(-((i - j) ** 2) / (2 * width**2)) for j in range(5)])
            np.testing.assert_allclose(maps.prior[0, head, i], density / density.sum(), atol=1e-6)


def losses_and_score(kept):
    detector = AnomalyTransformer(window=6, kept=kept, **SMALL)
    torch.manual_seed(1)
    module, x = detector._module(2), torch.randn(3, 6, 2)
    with torch.no_grad():
        return (
            detector,
            module,
            x,
            detector._losses(module, x, At(1, 0)),
            detector._errors(module, x, At(0, 0)),
        )


def test_losses_and_scores_by_loop():
    _, module, x, losses, scores = losses_and_score("every row")
    with torch.no_grad():
        values, maps = module(x)
    error = ((values - x) ** 2).mean(dim=2).numpy()  # (3, 6)

    def kl(p, q):
        return sum(a * (math.log(a + 1e-4) - math.log(b + 1e-4)) for a, b in zip(p, q, strict=True))

    discrepancy = np.zeros((len(maps), 3, 6))
    for layer, (series, prior) in enumerate(maps):
        for b in range(3):
            for row in range(6):
                pairs = [(series[b, h, row].tolist(), prior[b, h, row].tolist()) for h in range(2)]
                discrepancy[layer, b, row] = np.mean([kl(s, p) + kl(p, s) for s, p in pairs])
    k = 3 * discrepancy.mean()
    np.testing.assert_allclose(losses, [error.mean() - k, error.mean() + k], rtol=1e-4)
    logits = -50 * discrepancy.sum(axis=0)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) * error
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(
        losses_and_score("last row, own row")[4], expected[:, -1], rtol=1e-3, atol=1e-7
    )


def test_the_two_losses_pull_at_different_maps():
    detector, module, x, *_ = losses_and_score("every row")
    first, second = detector._losses(module, x, At(1, 0))
    sigma = module.layers[-1].attention.sigma.weight
    pull = torch.autograd.grad(first, sigma, retain_graph=True, allow_unused=True)[0]
    assert pull is None or not pull.any()
    assert torch.autograd.grad(second, sigma)[0].abs().sum() > 0


def test_a_planted_anomaly_raises_the_reconstruction_error():
    """Every row of a window is weighed by a softmax, so a row's level is not the error alone."""
    train, table = planted()
    detector = AnomalyTransformer(
        window=20, kept="every row", windows="current", epochs=4, discrepancy_weight=0.0, **SMALL
    ).fit(train)
    scores = detector.score(table)
    assert contrast(scores) > 1.5


def test_caps_and_placements():
    train, table = planted()
    settings = {**SMALL, "window": 20, "epochs": 1, "max_train_windows": 16}
    every = AnomalyTransformer(**settings).fit(train).score(table)
    assert every.shape == (500,)
    long = AnomalyTransformer(**settings, long_rows=400).fit(train).score(table)
    np.testing.assert_allclose(long[::4], every[::4], rtol=1e-3, atol=1e-9)
    own = AnomalyTransformer(**settings, kept="last row, own row").fit(train).score(table)
    np.testing.assert_allclose(own[19:], every[:481], rtol=1e-3, atol=1e-9)


def test_the_original_keeps_every_row():
    detector = resolve("anomaly-transformer-original").make(0)
    assert (detector.window, detector.batch_size, detector.kept) == (100, 256, "every row")
    assert [detector._rate(epoch) / 1e-4 for epoch in (1, 2, 3, 4)] == [1, 1, 0.5, 0.25]


def test_five_hundred_channels():
    train, table = planted(channels=500)
    detector = AnomalyTransformer(**SMALL, epochs=1, max_train_windows=32, score_stride=20)
    assert np.isfinite(detector.fit(train).score(table)).all()
