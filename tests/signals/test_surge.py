"""Surges of many channels at once against loops."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from signals.toys import fitted, run
from vace_ad import VACE, load
from vace_ad.config import VACEConfig
from vace_ad.signals.incremental import Update
from vace_ad.signals.surge import AT_ONCE, FEWEST, Surge
from vace_ad.stream import Stream

SMALL = {"patch_length": 24, "widths": (4, 4, 4, 4), "channel_expansion": 1, "encoders": 1}


def noise(n: int, seed: int = 0, d: int = 40) -> np.ndarray:
    return 5 + np.random.default_rng(seed).normal(size=(n, d)) * np.geomspace(0.1, 10, d)


def bursts(n: int, d: int = 40) -> np.ndarray:
    rows = noise(n, seed=1, d=d)
    rows[:, 0] += 0.3  # where the stream is at home from the start
    rows[80:85] += 3 * np.geomspace(0.1, 10, d)
    rows[120, 1] = 1e9
    rows[150:] += np.geomspace(0.1, 10, d)
    return rows


@pytest.mark.parametrize(
    ("d", "half_life", "length"), [(32, 320, 24), (40, 8000, 60), (260, 90, 24)]
)
def test_evidence_equals_loops_whatever_the_chunks(d, half_life, length):
    train, rows = noise(300, d=d), bursts(200, d)
    signal, _ = fitted(Surge, [train], patch_length=length, drift_half_life=half_life)
    own, warm = naive.scaled(train, train), min(48, length)
    learned = [*naive.learn_surge(own, half_life, warm), 1.0]
    np.testing.assert_allclose(signal.learned, learned, rtol=1e-9)
    whole = run(signal, rows)
    wanted = naive.surge(own, naive.scaled(train, rows), half_life, warm)
    np.testing.assert_allclose(whole[0], wanted, rtol=1e-8, atol=1e-10)
    assert wanted[80:85].min() > 2 * wanted[:80].max()
    # A stream gives its signals at least `warm` rows to begin with.
    for cuts in (range(warm, 200), range(warm + 2, 200, 7), [90, 90, 180]):
        np.testing.assert_array_equal(run(signal, rows, cuts), whole)


def test_long_tables_are_measured_in_blocks_with_the_same_bits():
    signal, _ = fitted(Surge, [noise(300)])
    rows = bursts(2 * AT_ONCE + 77)
    cuts = [AT_ONCE - 5, AT_ONCE + 1]
    np.testing.assert_array_equal(run(signal, rows, cuts), run(signal, rows))


def test_few_channels_have_none_and_the_weight_grows_with_their_square_up_to_a_bound():
    assert fitted(Surge, [noise(300, d=FEWEST - 1)]) is None
    weights = {d: fitted(Surge, [noise(300, d=d)])[0].weight for d in (FEWEST, 75, 150, 400)}
    assert weights == pytest.approx({FEWEST: (FEWEST / 150) ** 2, 75: 0.25, 150: 1.0, 400: 3.0})


def test_a_fault_of_a_few_rows_is_sharp_and_one_wild_channel_is_bounded():
    signal, _ = fitted(Surge, [noise(2000, d=200)])
    calm, fault, wild, wilder = (noise(900, seed=1, d=200) for _ in range(4))
    fault[450:455] += np.geomspace(0.1, 10, 200)
    wild[450, 1], wilder[450, 1] = 1e2, 1e12
    line = run(signal, fault)[0]
    assert line[450:455].min() > 2 * np.delete(line, range(450, 455)).max()
    np.testing.assert_array_equal(line[:450], run(signal, calm)[0, :450])  # nothing leaks back
    np.testing.assert_array_equal(run(signal, wilder), run(signal, wild))
    assert run(signal, wild)[0, 450] < line[450:455].min()


def test_what_stays_becomes_usual_and_the_way_back_is_no_surge():
    signal, _ = fitted(Surge, [noise(2000, d=100)], drift_half_life=1600)
    rows = noise(3000, seed=1, d=100)
    rows[500:2500] += 2 * np.geomspace(0.1, 10, 100)
    line = run(signal, rows)[0]
    assert line[500:510].mean() > 5 * line[2300:2500].mean()
    assert line[2500:].max() < 0.2 * line[500:510].mean()


def test_a_constant_training_has_a_unit_too():
    signal, _ = fitted(Surge, [np.full((300, 40), 7.0)])
    assert np.array_equal(run(signal, np.full((200, 40), 7.0)), np.zeros((1, 200)))


def test_a_restored_signal_and_a_resumed_stream_give_the_same_bits():
    signal, _ = fitted(Surge, [noise(300)])
    again = Surge.restored(signal.arrays(), signal.normal, VACEConfig(), signal.constants())
    rows = bursts(200)
    wanted = run(signal, rows)
    np.testing.assert_array_equal(run(again, rows), wanted)
    fresh = again.begin()
    fresh.resume(signal.begin().state())  # of a stream that has seen nothing yet
    np.testing.assert_array_equal(fresh.add(rows), wanted)
    first, second = signal.begin(live=True), again.begin(live=True)
    done = first.add(rows[:77])
    np.testing.assert_array_equal(first.now, done)  # a row's evidence is final at once
    second.resume(first.state())
    parts = [done, second.end(), second.add(rows[77:]), second.end()]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), wanted)


def test_an_update_learns_what_new_rows_vary_by_and_accepted_rows_are_usual():
    train, new = noise(400), noise(400, seed=3)
    new *= np.repeat(np.random.default_rng(0).uniform(0.5, 2.5, size=(40, 1)), 10, axis=0)
    signal, _ = fitted(Surge, [train])
    update = Update([new], [], 400, signal.normal, VACEConfig())
    wider, _ = signal.updated(update)
    lengths = naive.surge_lengths(naive.scaled(train, new), 8000, 48)
    above = naive.surge_above(lengths, signal.learned[0], 8000, 48)
    deviation = np.sqrt((signal.learned[1] ** 2 + above.var()) / 2)
    usual = (signal.learned[0] + lengths.mean()) / 2
    np.testing.assert_allclose(wider.learned, [usual, deviation, 1.0], rtol=1e-9)
    rows = bursts(140)
    assert run(signal, rows)[0, 80:85].min() > 0
    named = Update([], [rows[80:85]], 400, signal.normal, VACEConfig())
    accepting, _ = signal.updated(named)
    np.testing.assert_array_equal(accepting.learned[:2], signal.learned[:2])
    assert run(accepting, rows)[0, 80:85].max() < 0.1 * run(signal, rows)[0, 80:85].min()


@pytest.mark.parametrize("size", [1, 7, 30])
def test_a_detector_with_surges_is_the_same_in_chunks_and_after_saving(size, tmp_path):
    detector = VACE(**SMALL).fit(noise(300))
    rows = np.asarray(bursts(130), order="F")
    whole = detector.signals(np.ascontiguousarray(rows))
    assert list(whole)[-1] == "surge"
    detector.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").score(rows), sum(whole.values()))
    stream = Stream(detector.model_)
    added = [stream.add(rows[a : a + size]) for a in range(0, 130, size)] + [stream.finish()]
    for name, line in whole.items():
        parts = np.concatenate([each.signals[name] for each in added])
        np.testing.assert_array_equal(parts, line, err_msg=name)
