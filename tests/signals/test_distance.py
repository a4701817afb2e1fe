"""Distance from the past average against loops."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from signals.toys import fitted, run
from vace_ad import VACE
from vace_ad.config import VACEConfig
from vace_ad.signals.distance import Distance
from vace_ad.stream import Stream


def noise(n: int, seed: int = 0, d: int = 3) -> np.ndarray:
    return 5 + np.random.default_rng(seed).normal(size=(n, d)) * np.geomspace(0.1, 10, d)


def away(n: int, d: int = 3) -> np.ndarray:
    rows = noise(n, seed=1, d=d)
    rows[:30, 0] += 0.2  # where the stream is at home from the start
    rows[80:120] += 3 * np.geomspace(0.1, 10, d)
    rows[125, 1] = 1e9
    return rows


@pytest.mark.parametrize(("d", "half_life", "length"), [(1, 20, 24), (3, 8000, 60), (12, 90, 24)])
def test_evidence_equals_loops_whatever_the_chunks(d, half_life, length):
    train, rows = noise(400, d=d), away(200, max(d, 2))[:, :d]
    signal, _ = fitted(Distance, [train], patch_length=length, drift_half_life=half_life)
    own, warm = naive.scaled(train, train), min(48, length)
    np.testing.assert_allclose(signal.learned, naive.learn_distance(own), rtol=1e-10)
    wanted = naive.distance(own, naive.scaled(train, rows), half_life, warm)
    whole = run(signal, rows)
    np.testing.assert_allclose(whole[0], wanted, rtol=1e-9)
    # A stream gives its signals at least `warm` rows to begin with.
    for cuts in (range(warm, 200), range(warm + 2, 200, 7), [90, 90, 180]):
        np.testing.assert_array_equal(run(signal, rows, cuts), whole)


def test_rows_far_away_are_heard_and_one_wild_value_is_not_everything():
    signal, _ = fitted(Distance, [noise(2000)])
    far, wild = noise(900, seed=1), noise(900, seed=1)
    far[400:500] += 4 * np.geomspace(0.1, 10, 3)
    wild[450, 1] = 1e12
    calm = run(signal, noise(900, seed=1))[0]
    assert run(signal, far)[0, 430:470].min() > 1.5 * calm.max()
    assert run(signal, wild)[0].max() < 1.1 * calm.max()


def test_a_constant_training_has_a_unit_too():
    signal, _ = fitted(Distance, [np.full((300, 2), 7.0)])
    assert np.array_equal(run(signal, np.full((200, 2), 7.0)), np.zeros((1, 200)))


def test_a_restored_signal_and_a_resumed_stream_give_the_same_bits():
    signal, _ = fitted(Distance, [noise(300)])
    again = Distance.restored(signal.arrays(), signal.normal, VACEConfig(), signal.constants())
    rows = away(200)
    wanted = run(signal, rows)
    np.testing.assert_array_equal(run(again, rows), wanted)
    first, second = signal.begin(live=True), again.begin(live=True)
    done = first.add(rows[:77])
    second.resume(first.state())
    parts = [done, second.add(rows[77:]), second.end()]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), wanted)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [1, 7, 30])
def test_a_stream_warms_up_the_same_whatever_the_chunks_and_the_memory_order(size, order):
    detector = VACE(patch_length=24, widths=(4, 4, 4, 4), channel_expansion=1, encoders=1)
    detector.fit(noise(300, d=20))
    rows = np.asarray(away(130, d=20), order=order)
    whole = detector.signals(np.ascontiguousarray(rows))
    stream = Stream(detector.model_)
    added = [stream.add(rows[a : a + size]) for a in range(0, 130, size)] + [stream.finish()]
    for name, line in whole.items():
        parts = np.concatenate([each.signals[name] for each in added])
        np.testing.assert_array_equal(parts, line, err_msg=name)
