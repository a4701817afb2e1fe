import pytest

from baselines.planted import contrast, planted

torch = pytest.importorskip("torch")

from vace_study.baselines import resolve  # noqa: E402
from vace_study.baselines.lstmad import LSTMAD  # noqa: E402


@pytest.mark.parametrize("channels", [1, 38, 500])
def test_weights(channels):
    lstm = 4 * 20 * (channels + 20) + 8 * 20 + 4 * 20 * 40 + 8 * 20  # two layers
    expected = 2 * lstm + 20 * channels + channels
    assert sum(p.numel() for p in LSTMAD()._module(channels).parameters()) == expected


def test_the_decoder_goes_on_from_the_encoders_state():
    module, x = LSTMAD()._module(2), torch.randn(3, 9, 2)
    _, (hidden, cell) = module.encoder(x)
    decoded, _ = module.decoder(torch.zeros(3, 1, 2), (hidden, cell))
    expected = module.head(torch.nn.functional.gelu(decoded[:, -1]))
    assert torch.allclose(module(x), expected)


@pytest.mark.parametrize("name", ["lstmad", "lstmad-fixed"])
def test_a_planted_anomaly_is_found(name):
    train, table = planted()
    detector = resolve(name).make(0)
    detector.window, detector.epochs, detector.learning_rate = 30, 10, 5e-3
    assert contrast(detector.fit(train).score(table)) > 3


def test_few_training_rows_stop_the_published_one_after_four_epochs():
    train, _ = planted()  # 120 rows validate, 151 are needed
    settings = {"epochs": 6, "max_train_windows": 32, "learning_rate": 5e-3}
    assert len(LSTMAD(**settings).fit(train).history_) == 4
    assert len(LSTMAD(**settings, unwatched="train on").fit(train).history_) == 6


def test_five_hundred_channels():
    train, table = planted(channels=500)
    scores = LSTMAD(epochs=1, max_train_windows=64, score_stride=10).fit(train).score(table)
    assert contrast(scores) > 1.5
