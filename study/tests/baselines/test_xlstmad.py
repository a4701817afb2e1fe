"""xLSTMAD: sizes, where scores are put, what the reinterpretation does, and the missing extra."""

import sys

import numpy as np
import pytest
import torch

from vace_ad.errors import MissingExtraError, TooShortError
from vace_study.baselines.modules.xlstmad import XLSTMADModule, stack
from vace_study.baselines.xlstmad import XLSTMADForecast, XLSTMADLeaderboard, XLSTMADReconstruction

SMALL = {"window": 8, "width": 20, "epochs": 1, "batch_size": 16}


def table(rows, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    rhythm = np.sin(np.arange(rows)[:, None] / (2 + np.arange(channels)))
    return rhythm + 0.05 * rng.normal(size=(rows, channels))


def test_a_stack_has_the_published_number_of_weights():
    assert sum(each.numel() for each in stack(40, 50).parameters()) == 38_696


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "xlstm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vace-ad-study\[xlstm\]'"):
        XLSTMADLeaderboard().fit(table(100))


def outputs(detector, window, steps):
    """(steps, channels) of one window on its own: the network sees no other window."""
    with torch.no_grad():
        x = torch.from_numpy(window.astype(np.float32))[None]
        return detector.module_(x, steps)[:, 0].double().numpy()


def test_repeated_decoding_is_the_decoder_on_its_own_output():
    torch.manual_seed(0)
    module = XLSTMADModule(2, 20, 8, "repeated").eval()
    x = torch.randn(3, 8, 2)
    with torch.no_grad():
        found = module(x, 3)
        state = module.encoder(module.enter(x))[:, -1:]
        for step in range(3):
            state = module.decoder(state)
            expected = module.leave(torch.nn.functional.gelu(state))[:, 0]
            torch.testing.assert_close(found[step], expected)


def test_leaderboard_scores_lie_at_the_last_row_of_a_window():
    series = table(30, seed=1)
    detector = XLSTMADLeaderboard(**SMALL).fit(table(60))
    scaled = (series - series.mean(axis=0)) / series.std(axis=0)  # by the scored table itself
    expected = np.zeros(30)
    for last in range(7, 30):
        window = scaled[last - 7 : last + 1]
        expected[last] = np.mean((outputs(detector, window, 8) - window) ** 2)
    expected[:7] = expected[7]
    np.testing.assert_allclose(detector.score(series), expected, rtol=1e-4)


def test_leaderboard_parts_share_rows():
    detector = XLSTMADLeaderboard(**SMALL)
    rows = table(57)  # 50 windows of 8: 40 train, 10 validate
    first, second = detector._split(rows)
    np.testing.assert_array_equal(first, rows[:47])
    np.testing.assert_array_equal(second, rows[40:])


@pytest.mark.parametrize("layout", ["reinterpreted", "transposed"])
def test_reconstruction_of_the_paper(layout):
    train, series = table(60), table(30, seed=1)
    detector = XLSTMADReconstruction(**SMALL, layout=layout).fit(train)
    part = train[:48]  # the first 80 % scale everything
    scaled = (series - part.mean(axis=0)) / part.std(axis=0)
    starts = [min(i, 22) for i in range(30)]
    expected = np.zeros(30)
    for first in range(0, 30, 16):  # what is compared depends on the batch
        batch = starts[first : first + 16]
        guesses = [outputs(detector, scaled[start : start + 8], 8) for start in batch]
        said = [guesses[b][step] for step in range(8) for b in range(len(batch))]
        for b, start in enumerate(batch):
            truth = scaled[start : start + 8]
            # Reinterpreted: rows said one after the other, step by step through all windows.
            rows = said[8 * b : 8 * b + 8] if layout == "reinterpreted" else guesses[b]
            expected[first + b] = np.mean((np.array(rows) - truth) ** 2)
    np.testing.assert_allclose(detector.score(series), expected, rtol=1e-4)


def test_a_forecast_lies_at_the_last_row_that_it_predicts():
    train, series = table(80), table(30, seed=1)
    detector = XLSTMADForecast(**SMALL, layout="transposed").fit(train)
    scaled = (series - train[:64].mean(axis=0)) / train[:64].std(axis=0)
    expected = np.zeros(30)
    for i in range(18):
        guess = outputs(detector, scaled[i : i + 8], 5)
        expected[i + 12] = np.mean((guess - scaled[i + 8 : i + 13]) ** 2)
    expected[:12] = expected[12]
    np.testing.assert_allclose(detector.score(series), expected, rtol=1e-4)
    with pytest.raises(TooShortError, match="12 rows came"):
        detector.score(series[:12])


def test_the_cap_counts_from_a_number_of_rows():
    capped = XLSTMADLeaderboard(**SMALL, max_train_windows=5, cap_above=50)
    assert len(capped._train_starts(50)) == 43
    assert len(capped._train_starts(51)) == 5


def test_a_planted_anomaly_is_found():
    train, series = table(200), table(120, seed=1)
    series[80:84] += 4 * np.array([1, -1, 1, -1])[:, None]
    scores = XLSTMADLeaderboard(**{**SMALL, "epochs": 3}).fit(train).score(series)
    assert 80 <= scores.argmax() <= 91


def test_500_channels():
    detector = XLSTMADLeaderboard(**SMALL, max_train_windows=4, cap_above=0).fit(table(60, 500))
    assert np.isfinite(detector.score(table(20, 500, seed=1))).all()
