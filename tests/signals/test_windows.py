import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vace_ad.method.amplitude import Amplitude, Channels, Envelope

import naive
from vace_ad.signals.drift import past_average
from vace_ad.signals.folds import contiguous_folds

WINDOWS = (64, 32, 8)


def rows(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return 5 + rng.normal(size=(n, d)) * [1, 10, 0.1][:d]


@given(n=st.integers(1, 60), half_life=st.floats(1, 100), cut=st.integers(0, 60))
def test_the_past_average_equals_loops_and_does_not_mind_cuts(n, half_life, cut):
    values = np.random.default_rng(n).normal(size=(n, 2))
    start = np.array([0.5, 0.0])
    got, state = past_average(values, start, half_life)
    expected, last = naive.past_average(values, start, half_life)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    np.testing.assert_allclose(state, last, atol=1e-12)
    first, between = past_average(values[:cut], start, half_life)
    second, end = past_average(values[cut:], between, half_life)
    np.testing.assert_array_equal(np.concatenate([first, second]), got)
    np.testing.assert_array_equal(end, state)


@pytest.mark.parametrize(("window", "half_life"), [(2, 30), (8, 50), (17, 200), (32, 1000)])
def test_evidence_equals_loops(window, half_life):
    train, test = rows(), rows(150, seed=1)
    test[60:100, 1] += 40
    test[120:, 2] *= 3
    channels = Channels.of([train])
    envelope, _ = Envelope.fit([channels.scaled(train)], window)
    scaled = channels.scaled(test)
    got, _ = envelope.evidence(scaled, envelope.start(), half_life)
    step = max(1, window // 8)
    expected = naive.amplitude(
        scaled, envelope.low, envelope.high, envelope.usual, window, step, half_life
    )
    np.testing.assert_allclose(got, expected, atol=1e-9)


def test_a_level_shift_speaks_through_level_and_a_change_of_noise_through_scale():
    train = rows(2000)
    amplitude, _ = Amplitude.fit([train], WINDOWS, 4000)
    shifted, noisy = rows(300, seed=1), rows(300, seed=1)
    shifted[100:200, 0] += 6
    noisy[100:200, 0] = 5 + 8 * (noisy[100:200, 0] - 5)
    for test, loud in ((shifted, 0), (noisy, 1)):
        evidence, _ = amplitude.evidence(test, amplitude.start())
        assert evidence[loud, 120:180].min() > 3 * evidence[loud, :60].max()


def test_a_level_that_stays_becomes_normal_at_the_stated_rate():
    train = rows(2000)
    amplitude, _ = Amplitude.fit([train], WINDOWS, 500)
    test = rows(4000, seed=1)
    test[500:, 0] += 8
    level = amplitude.evidence(test, amplitude.start())[0][0]
    fresh, after_one, late = level[560:600].mean(), level[1050:1100].mean(), level[3500:].mean()
    assert fresh > 2 * late
    assert fresh > after_one > late


def test_channels_in_units_of_their_own_and_constant_ones():
    train = np.stack([np.arange(100) % 2 * 1e30, np.full(100, 50.0), np.zeros(100)], axis=1)
    channels = Channels.of([train])
    np.testing.assert_allclose(channels.scale, [0.5e30, 0.5, 1.0])
    huge = np.full((2, 3), 1e99)
    assert np.isfinite(channels.scaled(huge)).all()


def test_held_out_evidence_covers_all_training_rows():
    parts = [rows(200), rows(130, seed=2)]
    amplitude, held = Amplitude.fit(parts, WINDOWS, 4000)
    assert [h.shape for h in held] == [(4, 200), (4, 130)]
    assert all(np.isfinite(h).all() for h in held)
    assert amplitude.envelopes[0].usual.shape == (2,)


@given(n=st.integers(1, 60), step=st.integers(1, 5), length=st.integers(1, 40))
def test_folds_hold_out_each_window_once_and_share_no_row(n, step, length):
    starts = np.arange(n) * step
    seen = []
    for fit, held in contiguous_folds(starts, length):
        seen += held.tolist()
        assert len(fit) > 0
        apart = np.abs(starts[fit][:, None] - starts[held][None]).min()
        few = len(fit) < 8 or apart < length
        outside = sum(np.abs(starts[held] - s).min() >= length for s in starts)
        assert apart >= length or outside < 8, few
    assert sorted(seen) == list(range(n))
