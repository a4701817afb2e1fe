import math

import numpy as np
import pytest

from baselines.planted import contrast, planted

torch = pytest.importorskip("torch")

from vace_study.baselines import resolve  # noqa: E402
from vace_study.baselines.modules.omnianomaly import OmniAnomalyModule  # noqa: E402
from vace_study.baselines.networks.training import At  # noqa: E402
from vace_study.baselines.omnianomaly import OmniAnomaly  # noqa: E402


@pytest.mark.parametrize("channels", [1, 38, 500])
def test_weights(channels):
    gru = 3 * 32 * (channels + 32) + 6 * 32 + 3 * 32 * 64 + 6 * 32
    encoder = 2 * (32 * 32 + 32 + 1) + 32 * 16 + 16
    decoder = 8 * 32 + 32 + 1 + 32 * 32 + 32 + 1 + 32 * channels + channels
    module = OmniAnomaly()._module(channels)
    assert sum(p.numel() for p in module.parameters()) == gru + encoder + decoder


def entered(transposed, random_state):
    """What the GRU gets of a batch of 2 windows of 3 rows, and its first state."""
    module = OmniAnomalyModule(1, 4, 2, transposed=transposed)
    seen = []
    module.gru.register_forward_pre_hook(lambda _, args: seen.append(args))
    x = torch.arange(6.0).reshape(2, 3, 1)
    out = module(x, random_state)
    assert out.values.shape == x.shape
    return seen[0]


def test_a_sequence_mixes_windows_unless_transposed():
    laid, _ = entered(False, False)
    assert laid[:, 0, 0].tolist() == [0, 2, 4]  # of windows (0, 1, 2) and (3, 4, 5)
    laid, _ = entered(True, False)
    assert laid[:, 0, 0].tolist() == [0, 1, 2]


def test_the_first_state_is_zero_or_a_draw():
    assert not entered(False, False)[1].any()
    drawn = entered(False, True)[1]
    assert 0 <= float(drawn.min()) < float(drawn.max()) < 1
    published, fixed = OmniAnomaly(), OmniAnomaly(first_state="zero")
    assert [published._random_state(At(1, i)) for i in range(3)] == [False, True, True]
    assert [fixed._random_state(At(1, i)) for i in range(3)] == [False, False, False]


def test_the_loss_by_loop():
    detector = OmniAnomaly(window=3, hidden=4, latent=2)
    module, x = detector._module(1), torch.rand(2, 3, 1)
    torch.manual_seed(0)
    found = float(detector._losses(module, x, At(1, 0)).detach())
    torch.manual_seed(0)
    out = module(x, False)
    divergence = 0.0
    for mean, log in zip(
        out.mean.flatten().tolist(), out.log_variance.flatten().tolist(), strict=True
    ):
        divergence += (mean**2 + math.exp(log) - 1 - log) / 2
    error = sum(
        (a - b) ** 2
        for a, b in zip(out.values.flatten().tolist(), x.flatten().tolist(), strict=True)
    )
    assert found == pytest.approx(error / 6 + 0.01 * divergence / 2, rel=1e-5)


@pytest.mark.parametrize(("name", "early"), [("omnianomaly", 50), ("omnianomaly-fixed", 0)])
def test_a_planted_anomaly_is_found(name, early):
    train, table = planted()
    detector = resolve(name).make(0)
    detector.epochs, detector.max_train_windows = 4, 128
    assert contrast(detector.fit(train).score(table), early) > 2


def test_scores_repeat_although_latents_are_drawn():
    train, table = planted()
    detector = OmniAnomaly(window=20, epochs=1, max_train_windows=64).fit(train)
    np.testing.assert_array_equal(detector.score(table), detector.score(table))


def test_five_hundred_channels():
    train, table = planted(channels=500)
    scores = OmniAnomaly(epochs=1, max_train_windows=64, score_stride=10).fit(train).score(table)
    assert contrast(scores, early=50) > 1.5
