"""KAN-AD: both forms against loops, their published sizes, and how channels are joined."""

import math

import numpy as np
import pytest
import torch

from vace_ad.errors import TooShortError
from vace_study.baselines.kanad import KANAD, KANADReconstruction
from vace_study.baselines.modules.kanad import KANADModule


def table(rows, channels=2, seed=0):
    rng = np.random.default_rng(seed)
    rhythm = np.sin(np.arange(rows)[:, None] / (2 + np.arange(channels)))
    return rhythm + 0.05 * rng.normal(size=(rows, channels))


def n_weights(module):
    return sum(each.numel() for each in module.parameters())


def test_both_forms_have_the_published_number_of_weights():
    assert n_weights(KANAD()._module(1)) == 274
    assert n_weights(KANADReconstruction()._module(1)) == 9_845


# ---------------------------------------------------------------------- the network, by loops


def gelu(x):
    each = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in np.ravel(x)]
    return np.array(each).reshape(np.shape(x))


def norm(x, state, i):
    mean, variance = state[f"norms.{i}.running_mean"], state[f"norms.{i}.running_var"]
    weight, bias = state[f"norms.{i}.weight"], state[f"norms.{i}.bias"]
    scaled = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    return scaled * weight[:, None] + bias[:, None]


def convolve(x, kernel):
    padded = np.pad(x, ((0, 0), (1, 1)))
    out = np.zeros((len(kernel), x.shape[1]))
    for o in range(len(kernel)):
        for t in range(x.shape[1]):
            out[o, t] = np.sum(padded[:, t : t + 3] * kernel[o])
    return out


def by_loops(x, state, order, divided):
    """One window of one channel."""
    window = len(x)
    maps = []
    for k in range(1, order + 1):
        turns = [t / (window * k) if divided else t * k / window for t in range(window)]
        maps.append([math.cos(2 * math.pi * turn) for turn in turns])
    maps += [[math.cos(k * v) for v in x] for k in range(1, order + 1)]
    maps = np.array([*maps, x])
    hidden = gelu(norm(convolve(maps, state["first.weight"]), state, 0))
    hidden = gelu(norm(convolve(hidden, state["second.weight"]) + maps, state, 1))
    joined = state["join.weight"][0, :, 0] @ hidden + x
    last = gelu(norm(joined[None], state, 2))[0]
    return state["projection.weight"] @ last + state["projection.bias"]


def numbers(module):
    return {name: each.double().numpy() for name, each in module.state_dict().items()}


@pytest.mark.parametrize("divided", [False, True])
def test_the_network_equals_loops(divided):
    torch.manual_seed(0)
    module = KANADModule(12, 3, 5, divided=divided)
    x = torch.randn(40, 12)
    module(x)  # moves the running statistics away from 0 and 1
    module.eval()
    with torch.no_grad():
        found = module(x[:4]).numpy()
    expected = [by_loops(row, numbers(module), 3, divided) for row in x[:4].double().numpy()]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_next_difference_is_scored_at_its_own_row():
    train, series = table(80), table(50, seed=1)
    detector = KANAD(window=10, epochs=2).fit(train)
    state = numbers(detector.module_)
    steps, known = np.diff(series, axis=0), np.diff(train, axis=0)
    scaled = (steps - known.mean(axis=0)) / known.std(axis=0)
    expected = np.zeros(50)
    for i in range(len(scaled) - 10):
        errors = [
            abs(by_loops(scaled[i : i + 10, c], state, 2, False)[0] - scaled[i + 10, c])
            for c in range(2)
        ]
        expected[i + 11] = np.mean(errors)  # difference j lies between rows j and j + 1
    expected[:11] = expected[11]
    np.testing.assert_allclose(detector.score(series), expected, rtol=1e-3, atol=1e-5)


def test_separate_networks_and_the_largest_error():
    train, series = table(80), table(50, seed=1)
    detector = KANAD(window=10, epochs=2, channels="separate").fit(train)
    each = [KANAD(window=10, epochs=2).fit(train[:, [c]]).score(series[:, [c]]) for c in range(2)]
    np.testing.assert_array_equal(detector.score(series), np.maximum(*each))


def test_an_error_that_is_no_number_counts_as_much_as_it_is_set_to():
    detector = KANAD(window=10, epochs=1).fit(table(60, 1))
    with torch.no_grad():
        detector.module_.projection.bias.fill_(math.nan)
    assert (detector.score(table(40, 1)) == 1000).all()


def test_reconstruction_scores_every_row_in_windows_side_by_side():
    train, series = table(80), table(35, seed=1)
    detector = KANADReconstruction(window=10, order=2, epochs=2).fit(train)
    state = numbers(detector.module_)
    scaled = (series - train.mean(axis=0)) / train.std(axis=0)
    expected = np.zeros(35)
    for start in (0, 10, 20, 25):  # the last ends at the end; its tail is kept
        for row in range(start if start < 25 else 30, start + 10):
            for c in range(2):
                window = scaled[start : start + 10, c]
                guess = by_loops(window, state, 2, True)
                expected[row] += (guess[row - start] - window[row - start]) ** 2 / 2
    np.testing.assert_allclose(detector.score(series), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("system", [KANAD, KANADReconstruction])
def test_a_planted_anomaly_is_found(system):
    train, series = table(600), table(400, seed=1)
    series[250:256] += 3 * np.array([1, -1, 1, -1, 1, -1])[:, None]
    scores = system(window=24, epochs=8, batch_size=64).fit(train).score(series)
    assert 245 <= scores.argmax() <= 260
    assert np.median(scores[250:256]) > 3 * np.quantile(scores[:240], 0.95)


def test_the_first_difference_counts_as_a_row():
    detector = KANAD(window=10, epochs=1).fit(table(60))
    assert detector.score(table(12)).shape == (12,)
    with pytest.raises(TooShortError, match="11 rows came, this method needs at least 12"):
        detector.score(table(11))


@pytest.mark.parametrize("channels", ["shared", "separate"])
def test_what_is_left_out_is_told(channels):
    capped = KANAD(window=10, epochs=1, channels=channels, max_train_windows=20, score_stride=2)
    capped.fit(table(61)).score(table(50))  # 60 differences, 48 of them train: 38 windows
    assert capped.notes_ == (
        "capped: 20 of 38 training windows",
        "capped: 1 of 100 epochs",
        "capped: one of 2 windows scored",
    )
    whole = KANAD(window=10, epochs=1, channels=channels).fit(table(61))
    whole.score(table(50))
    assert whole.notes_ == ("capped: 1 of 100 epochs",)


@pytest.mark.parametrize("system", [KANAD, KANADReconstruction])
def test_500_channels(system):
    detector = system(window=10, epochs=1, max_train_windows=4).fit(table(60, 500))
    assert np.isfinite(detector.score(table(30, 500, seed=1))).all()
