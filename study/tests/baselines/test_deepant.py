import numpy as np
import pytest

from baselines.planted import contrast, planted

torch = pytest.importorskip("torch")

from vace_study.baselines import resolve  # noqa: E402
from vace_study.baselines.deepant import DeepAnT  # noqa: E402
from vace_study.baselines.modules.deepant import DeepAnTModule  # noqa: E402


@pytest.mark.parametrize("channels", [1, 38, 500])
def test_weights(channels):
    convolutions = (3 * 32 * channels + 32) + (3 * 32 * 40 + 40)
    dense = (80 * 40 + 40) + (40 * channels + channels)
    assert convolutions + dense == 137 * channels + 7152
    module = DeepAnT()._module(channels)
    assert sum(weights.numel() for weights in module.parameters()) == convolutions + dense


def test_the_window_is_reinterpreted_or_transposed():
    x = torch.arange(50.0 * 3).reshape(1, 50, 3)
    for transposed in (False, True):
        module = DeepAnTModule(3, (32, 40), transposed=transposed, with_maximum=True)
        entered = []
        module.convolutions.register_forward_pre_hook(
            lambda _, args, entered=entered: entered.append(args[0])
        )
        module(x)
        first_channel = entered[0][0, 0].tolist()
        expected = [3 * t for t in range(50)] if transposed else list(range(50))
        assert first_channel == expected


@pytest.mark.parametrize("with_maximum", [False, True])
def test_the_pooling_joins_the_mean_with_itself_or_with_the_maximum(with_maximum):
    module = DeepAnTModule(2, (32, 40), transposed=True, with_maximum=with_maximum).eval()
    pooled = []
    module.head.register_forward_pre_hook(lambda _, args: pooled.append(args[0][0]))
    x = torch.randn(1, 50, 2)
    module(x)
    maps = module.convolutions(x.transpose(1, 2))[0]  # (40, 11)
    assert maps.shape == (40, 11)
    second = maps.amax(dim=1) if with_maximum else maps.mean(dim=1)
    expected = torch.cat([maps.mean(dim=1), second]).tolist()
    np.testing.assert_allclose(pooled[0].tolist(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["deepant", "deepant-current", "deepant-fixed"])
def test_a_planted_anomaly_is_found(name):
    train, table = planted()
    detector = resolve(name).make(0)
    detector.epochs = 8
    assert contrast(detector.fit(train).score(table)) > 3


def test_five_hundred_channels():
    train, table = planted(channels=500)
    detector = DeepAnT(epochs=1, max_train_windows=64).fit(train)
    assert contrast(detector.score(table)) > 1.5


def test_the_rate_falls_every_five_epochs():
    rates = [DeepAnT()._rate(epoch) for epoch in (1, 5, 6, 11)]
    np.testing.assert_allclose(rates, [8e-4, 8e-4, 6e-4, 4.5e-4])
