import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from signals.toys import fitted, run
from vace_ad.config import VACEConfig
from vace_ad.signals.baseline_model import Normal, contiguous_folds
from vace_ad.signals.window_signal import EnvelopeEvidence, LevelScale
from vace_ad.signals.windows import Bounds, Envelope, Windowed, by_line

BOTH = Windowed(1, (("level", 1.0), ("scale", 1.0)))


def rows(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return 5 + rng.normal(size=(n, d)) * [1, 10, 0.1][:d]


@pytest.mark.parametrize("warm", [1, 12, 48])
@pytest.mark.parametrize(("window", "half_life"), [(2, 30), (8, 50), (17, 200), (32, 1000)])
def test_evidence_equals_loops(window, half_life, warm):
    train, test = rows(), rows(150, seed=1)
    test[:20, 0] += 3  # what the stream is used to from the start
    test[60:100, 1] += 40
    test[120:, 2] *= 3
    normal = Normal.units([train])
    envelope, _ = Envelope.fit([normal.scaled(train)], BOTH, window, Bounds())
    scaled = normal.scaled(test)
    step = max(1, window // 8)
    assert (envelope.window, envelope.step) == (min(8, window) * step, step)
    learned = (envelope.low, envelope.high, envelope.mean_evidence)
    expected = naive.amplitude(scaled, *learned, envelope.window, step, half_life, warm)
    found = []
    # A stream gives its signals at least `warm` rows to begin with.
    for cuts in ([], range(warm, 150), [warm + 7, 80]):
        evidence = EnvelopeEvidence(envelope, 3, half_life, warm)
        done = [evidence.add(part) for part in np.split(scaled, list(cuts))]
        found.append(np.concatenate([*done, evidence.end()], axis=1))
        np.testing.assert_allclose(found[-1], expected, atol=1e-9)
        np.testing.assert_array_equal(found[-1], found[0])


def test_a_stream_that_starts_at_another_level_is_used_to_it():
    signal, _ = fitted(LevelScale, [rows(2000)], patch_length=64)
    test = rows(300, seed=1)
    test[150:, 1] += 200
    away = test + np.array([20, 0, 0])
    plain, shifted = run(signal, test)[0], run(signal, away)[0]
    assert shifted[:80].max() < 0.2 * plain[180:].min()
    assert shifted[180:].min() > 0.5 * plain[180:].min()


def test_windows_are_as_long_as_a_patch_unless_it_is_long():
    train, test = [rows(2000)], rows(400, seed=1)
    found = {n: run(fitted(LevelScale, train, patch_length=n)[0], test) for n in (96, 150, 288)}
    np.testing.assert_array_equal(found[288], found[96])
    assert not np.array_equal(found[150], found[96])


def test_one_channel_far_outside_counts_more_than_many_a_little():
    assert by_line(np.array([[3.0, 0, 0, 0, 1, 1]]), 2).tolist() == [[3.0], [2**0.5]]


@pytest.mark.parametrize("window", [2, 8, 17, 32])
def test_envelopes_equal_loops(window):
    train = naive.scaled(rows(), rows())
    envelope, without = Envelope.fit([train], BOTH, window, Bounds())
    low, high, usual = naive.learn_windows(train, envelope.window, envelope.step)
    np.testing.assert_allclose(envelope.low, low, atol=1e-9)
    np.testing.assert_allclose(envelope.high, high, atol=1e-9)
    np.testing.assert_allclose(envelope.mean_evidence, usual, atol=1e-9)
    for own, (fit, _) in zip(without, folds_of(train, envelope), strict=True):
        features = naive.window_features(train, envelope.window, envelope.step)
        low, high = naive.envelope(features[fit])
        np.testing.assert_allclose(own.low, low, atol=1e-9)
        np.testing.assert_allclose(own.high, high, atol=1e-9)
        np.testing.assert_array_equal(own.mean_evidence, envelope.mean_evidence)


def folds_of(train, envelope):
    starts = range(0, len(train) - envelope.window + 1, envelope.step)
    return naive.folds(list(starts), envelope.window)


def test_a_level_shift_speaks_through_level_and_a_change_of_noise_through_scale():
    train = rows(2000)
    signal, _ = fitted(LevelScale, [train], patch_length=64)
    shifted, noisy = rows(300, seed=1), rows(300, seed=1)
    shifted[100:200, 0] += 6
    noisy[100:200, 0] = 5 + 8 * (noisy[100:200, 0] - 5)
    for test, loud in ((shifted, 0), (noisy, 1)):
        evidence = run(signal, test)
        assert evidence[loud, 120:180].min() > 3 * evidence[loud, :60].max()


def test_a_level_that_stays_becomes_normal_at_the_stated_rate():
    train = rows(2000)
    signal, _ = fitted(LevelScale, [train], patch_length=64, drift_half_life=500)
    test = rows(4000, seed=1)
    test[500:, 0] += 8
    level = run(signal, test)[0]
    fresh, after_one, late = level[560:600].mean(), level[1050:1100].mean(), level[3500:].mean()
    assert fresh > 2 * late
    assert fresh > after_one > late


def test_there_is_a_signal_without_each_block_also_of_several_parts():
    parts = [rows(200), rows(130, seed=2)]
    signal, without = fitted(LevelScale, parts, patch_length=64)
    assert len(without) == 4
    assert all(np.isfinite(run(each, parts[0])).all() for each in without)
    usual = [envelope.mean_evidence.shape for envelope in signal.windows.envelopes]
    assert usual == [(2,), (2,), (1,)]


def test_weights_and_bounds_are_part_of_the_model():
    signal, _ = fitted(LevelScale, [rows()])
    assert signal.constants() == {
        "windows": [
            [1, {"level": 0.5, "scale": 1.0}],
            [3, {"level": 0.5, "scale": 1.0}],
            [12, {"scale": 0.25}],
        ],
        "edge": 0.01,
        "narrowest": 0.3,
        "deviation_floor": 0.2,
    }
    test = rows(300, seed=1) * 3
    changed = {**signal.constants(), "narrowest": 3.0}
    config = VACEConfig()
    again = LevelScale.restored(signal.arrays(), signal.normal, config, signal.constants())
    other = LevelScale.restored(signal.arrays(), signal.normal, config, changed)
    assert np.array_equal(run(again, test), run(signal, test))
    assert run(other, test).max() < run(signal, test).max()


@given(n=st.integers(1, 60), step=st.integers(1, 5), length=st.integers(1, 40))
def test_folds_hold_out_each_window_once_and_share_no_row(n, step, length):
    starts = np.arange(n) * step
    seen = []
    for fit, held in contiguous_folds(starts, length):
        seen += held.tolist()
        assert len(fit) > 0
        apart = np.abs(starts[fit][:, None] - starts[held][None]).min(initial=length)
        few = len(fit) < 8 or apart < length
        outside = sum(np.abs(starts[held] - s).min(initial=length) >= length for s in starts)
        assert apart >= length or outside < 8, few
    assert sorted(seen) == list(range(n))


def test_windows_that_are_thinned_out_change_no_others() -> None:
    rows = np.random.default_rng(0).normal(size=(1500, 3))
    for part in (1, 3, 12):
        windowed = Windowed(part, (("level", 1.0), ("scale", 1.0)))
        envelope = Envelope.fit([rows], windowed, 96, Bounds())[0]
        for thin in (2, 7, 2000):
            thinned = envelope.features(rows, thin)
            np.testing.assert_array_equal(thinned, envelope.features(rows)[::thin])
