"""Spikes against loops, and what is one and what is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from signals.toys import fitted, run
from vace_ad import VACE
from vace_ad.config import VACEConfig
from vace_ad.signals import Training
from vace_ad.signals import spike as module
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.protocol import Seasonality
from vace_ad.signals.spike import Spike, stand_out


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
def test_evidence_equals_loops_whatever_the_chunks(half_life):
    train = waves(300)
    learned, _ = fitted(Spike, [train], drift_half_life=half_life)
    edge, usual = naive.learn_spikes(naive.scaled(train, train))
    np.testing.assert_allclose(learned.edge, edge, atol=1e-12)
    np.testing.assert_allclose(learned.mean_evidence, [usual], atol=1e-12)
    rows = waves(90, seed=1)
    rows[[0, 30, 31, 60, 89], [0, 1, 2, 1, 2]] += 9
    wanted = naive.spikes(naive.scaled(train, rows), edge, usual, half_life)
    assert wanted.max() > 0.5
    whole = run(learned, rows)
    np.testing.assert_allclose(whole[0], wanted, atol=1e-12)
    for cuts in (range(1, 90), range(7, 90, 7), [3, 3, 80]):
        assert np.array_equal(run(learned, rows, cuts), whole)


def test_blocks_of_training_change_nothing(monkeypatch):
    wanted, without = fitted(Spike, [waves(300), waves(40, seed=2)])
    for block in (1, 7, 30):
        monkeypatch.setattr(module, "BLOCK", block)
        found, again = fitted(Spike, [waves(300), waves(40, seed=2)])
        assert np.array_equal(found.edge, wanted.edge)
        assert all(np.array_equal(a.edge, b.edge) for a, b in zip(without, again, strict=True))


def test_a_jump_a_drift_and_a_longer_pulse_are_no_spikes():
    learned, _ = fitted(Spike, [waves(500)])
    calm = waves(500, seed=1)
    jump, drift, pulse, spike = (calm.copy() for _ in range(4))
    jump[250:, 0] += 20
    drift[:, 0] += np.linspace(0, 50, 500)
    pulse[250:255, 0] += 20
    spike[250, 0] += 20
    loudest = [run(learned, rows).max() for rows in (jump, drift, pulse)]
    found = run(learned, spike)
    assert found[0].argmax() == 250
    assert found[0, 250] > 1 > 4 * max(loudest)


def test_a_height_that_training_reached_says_nothing():
    train = waves(1000)
    train[::100, 1] += 20
    learned, _ = fitted(Spike, [train])
    rows = waves(200, seed=1)
    rows[100, 1] += 18
    assert run(learned, rows).max() == 0


def test_spikes_that_never_rest_lose_their_weight():
    learned, _ = fitted(Spike, [waves(500)], drift_half_life=200)
    rows = waves(4000, seed=1)
    rows[5::10, 0] += 20
    found = run(learned, rows)[0, 5::10]
    assert found[-1] < 0.95 * found[0]


def test_the_edge_without_a_block_does_not_know_its_spikes():
    parts = [waves(200), waves(200, seed=2)]
    parts[0][120, 0] += 9  # in the second block of 100 rows
    learned, without = fitted(Spike, parts, patch_length=16)
    assert [each.edge[0] < 0.5 * learned.edge[0] for each in without] == [0, 1, 0, 0]
    assert learned.mean_evidence.shape == (1,)


def test_a_training_as_short_as_one_row():
    row = [waves(1)]
    tiny, without = Spike.fit(Training(row, *Normal.fit(row), Seasonality(0, 0.0), VACEConfig()))
    assert tiny.edge.tolist() == [1, 1, 1]
    assert [each.edge.tolist() for each in without] == 4 * [[1, 1, 1]]


def test_the_detector_finds_a_single_bad_reading_and_says_so():
    rows = waves(6000)
    rows[5000, 1] += 6
    detector = VACE(random_state=0).fit(rows[:3000])
    signals = detector.signals(rows[3000:])
    score = sum(signals.values())
    assert score.argmax() == 2000
    at = {name: values[2000] - np.median(values) for name, values in signals.items()}
    assert max(at, key=at.get) == "spike"
    assert max(signals, key=lambda name: float(signals[name][2000])) == "spike"
    assert detector.explain(rows[3000:], 2000, 2001).top(1)[0][0] == detector.channels_[1]


def test_the_event_of_a_single_bad_reading_is_that_row_and_its_channel():
    rows = waves(6000)
    rows[5000, 1] += 6
    found = VACE(random_state=0).fit(rows[:3000]).detect(rows[3000:])
    event = max(found.anomalies, key=lambda event: event.score)
    assert event.start <= 2000 < event.end <= event.start + 30
    assert event.signal in ("jump", "change")
    assert event.shares[0][0] == "channel_1"
