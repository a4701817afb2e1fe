"""Spikes against loops, and what is one and what is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vace_ad.method import spikes

import naive
from vace_ad import VACE
from vace_ad.signals.spike import Spikes, stand_out


def waves(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(n)[:, None] / [7, 20, 45]) + 0.1 * rng.normal(size=(n, 3))


@given(n=st.integers(1, 40), values=st.integers(1, 30), seed=st.integers(0, 99))
def test_rows_stand_out_from_the_median_of_nine(n, values, seed):
    rows = np.random.default_rng(seed).integers(0, values, (n, 2)).astype(float)  # many ties
    padded = np.pad(rows, ((4, 4), (0, 0)), mode="edge")
    wanted = [abs(rows[t] - np.median(padded[t : t + 9], axis=0)) for t in range(n)]
    np.testing.assert_array_equal(stand_out(rows), wanted)


@pytest.mark.parametrize("half_life", [3, 4000])
def test_evidence_equals_loops_whatever_the_blocks(half_life, monkeypatch):
    learned, _ = Spikes.fit([waves(300)])
    rows = waves(90, seed=1)
    rows[[0, 30, 31, 60, 89], [0, 1, 2, 1, 2]] += 9
    wanted = naive.spikes(rows, learned.edge, learned.usual[0], half_life)
    assert wanted.max() > 0.5
    for block in (1, 7, 2048):
        monkeypatch.setattr(spikes, "BLOCK", block)
        found, _ = learned.evidence(rows, learned.usual, half_life)
        np.testing.assert_allclose(found[0], wanted, atol=1e-12)


def test_a_jump_a_drift_and_a_longer_pulse_are_no_spikes():
    learned, _ = Spikes.fit([waves(500)])
    calm = waves(500, seed=1)
    jump, drift, pulse, spike = (calm.copy() for _ in range(4))
    jump[250:, 0] += 20
    drift[:, 0] += np.linspace(0, 50, 500)
    pulse[250:255, 0] += 20
    spike[250, 0] += 20
    loudest = [
        learned.evidence(rows, learned.usual, 4000)[0].max() for rows in (jump, drift, pulse)
    ]
    found, _ = learned.evidence(spike, learned.usual, 4000)
    assert found[0].argmax() == 250
    assert found[0, 250] > 1 > 4 * max(loudest)


def test_a_height_that_training_reached_says_nothing():
    train = waves(1000)
    train[::100, 1] += 20
    learned, _ = Spikes.fit([train])
    rows = waves(200, seed=1)
    rows[100, 1] += 18
    assert learned.evidence(rows, learned.usual, 4000)[0].max() == 0


def test_spikes_that_never_rest_lose_their_weight():
    learned, _ = Spikes.fit([waves(500)])
    rows = waves(4000, seed=1)
    rows[5::10, 0] += 20
    found = learned.evidence(rows, learned.usual, 200)[0][0, 5::10]
    assert found[-1] < 0.95 * found[0]


def test_held_out_evidence_of_parts_and_of_a_training_as_short_as_one_row():
    learned, held = Spikes.fit([waves(200), waves(30, seed=2)])
    assert [part.shape for part in held] == [(1, 200), (1, 30)]
    assert learned.usual.shape == (1,)
    tiny, held = Spikes.fit([waves(1)])
    assert tiny.edge.tolist() == [1, 1, 1]
    assert held[0].tolist() == [[0]]


def test_the_detector_finds_a_single_bad_reading_and_says_so():
    rows = waves(6000)
    rows[5000, 1] += 6
    detector = VACE(random_state=0).fit(rows[:3000])
    signals = detector.signals(rows[3000:])
    score = sum(signals.values())
    assert score.argmax() == 2000
    at = {name: values[2000] - np.median(values) for name, values in signals.items()}
    assert max(at, key=at.get) == "spike"
    blame = detector.explain(rows[3000:], 2000, 2001)
    assert blame.signal == "spike"
    assert blame.top(1)[0][0] == detector.channels_[1]
