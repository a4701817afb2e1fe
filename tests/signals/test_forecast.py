"""The linear forecast against loops, and what it does and does not hear."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from signals.toys import fitted, run
from vace_ad.config import VACEConfig
from vace_ad.signals import forecast as module
from vace_ad.signals.forecast import Forecast


def waves(n: int, seed: int = 0, d: int = 3) -> np.ndarray:
    """Channels in steady motion, so that a row follows from the rows before."""
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(n)[:, None] / np.linspace(3, 9, d)) + 0.05 * rng.normal(size=(n, d))


def broken(n: int, d: int = 3) -> np.ndarray:
    rows = waves(n, seed=1, d=d)
    rows[40:44, 1] += [3, -3, 3, -3]
    rows[70:, 0] += 4
    rows[90, 2] -= 1e9
    return rows


# More channels than common movements, too.
@pytest.mark.parametrize(("d", "half_life"), [(3, 20), (3, 8000), (10, 50)])
def test_evidence_equals_loops_whatever_the_chunks(d, half_life):
    train, rows = waves(240, d=d), broken(130, d)
    own = naive.scaled(train, train)
    signal, _ = fitted(Forecast, [train], patch_length=24, drift_half_life=half_life)
    _, weights, edge, usual = naive.learn_forecast(own)
    np.testing.assert_allclose(signal.edge, edge, rtol=1e-9)
    np.testing.assert_allclose(signal.mean_evidence, [usual], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(signal.weights.own.T, [w[-6:] for w in weights], atol=1e-9)
    wanted = naive.forecast(own, naive.scaled(train, rows), half_life)
    assert wanted.max() > 0.1
    whole = run(signal, rows)
    np.testing.assert_allclose(whole[0], wanted, atol=1e-9)
    for cuts in (range(1, 130), range(7, 130, 7), [3, 3, 80]):
        np.testing.assert_array_equal(run(signal, rows, cuts), whole)


def test_a_block_is_forecast_worse_by_weights_that_did_not_see_it():
    train = waves(400)
    train[:100, 1] = waves(100)[:, 0] ** 2  # another motion than later
    signal, without = fitted(Forecast, [train], patch_length=24)
    block = signal.normal.scaled(train[:100])
    errors = [np.abs(each.residuals(block)).mean() for each in (signal, *without)]
    assert errors[1] > 1.1 * max(errors[0], *errors[2:])


def test_nothing_reaches_across_a_cut():
    signal, _ = fitted(Forecast, [waves(500)], drift_half_life=10**9)
    rows = broken(130)
    evidence = signal.begin()
    done = [evidence.add(rows[:60]), evidence.end(), evidence.add(rows[60:]), evidence.end()]
    apart = np.concatenate([run(signal, rows[:60]), run(signal, rows[60:])], axis=1)
    np.testing.assert_allclose(np.concatenate(done, axis=1), apart, rtol=1e-6)


def test_a_break_in_the_motion_is_heard_where_it_is():
    signal, _ = fitted(Forecast, [waves(2000)])
    calm, rows = waves(600, seed=1), waves(600, seed=1)
    rows[300:310, 0] *= -4
    found = run(signal, rows)[0]
    assert run(signal, calm).max() < 0.1 * found.max()
    assert 270 <= found.argmax() < 340
    assert found[:270].max() < 0.1 * found.max()
    assert found[345:].max() < 0.1 * found.max()


def test_the_main_movements_of_many_channels_are_those_of_all_eigenvectors(monkeypatch):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(400, module.COMMON)) * np.arange(2, 2 + module.COMMON)
    rows = hidden @ rng.normal(size=(module.COMMON, 60)) + rng.normal(size=(400, 60))
    exact = module._main_movements(rows)
    monkeypatch.setattr(module, "EXACT", 0)
    few = module._main_movements(rows)
    np.testing.assert_allclose(few @ few.T, exact @ exact.T, atol=1e-9)  # the same plane


def test_movements_as_large_as_one_left_out_are_left_out_too():
    """Twelve switches, each on as often as the others: no eight of them are the main ones."""
    on = np.random.default_rng(0).permuted(np.arange(480) % 12)
    train = np.eye(12)[on]
    first, _ = fitted(Forecast, [train], patch_length=24)
    order = np.random.default_rng(1).permutation(12)
    other, _ = fitted(Forecast, [train[:, order]], patch_length=24)
    test = np.eye(12)[np.random.default_rng(2).integers(12, size=100)]
    ours = first.residuals(first.normal.scaled(test))
    theirs = other.residuals(other.normal.scaled(test[:, order]))
    np.testing.assert_allclose(theirs, ours[:, order], atol=1e-9)


def test_only_the_last_rows_of_a_long_training_are_learned_from(monkeypatch):
    monkeypatch.setattr(module, "LEARNED", 200)
    old, new = waves(300, seed=5), waves(200)
    signal, _ = fitted(Forecast, [np.concatenate([old, new])], patch_length=24)
    scaled = signal.normal.scaled(new)
    np.testing.assert_allclose(signal.edge, naive.learn_forecast(scaled)[2], rtol=1e-9)


def test_a_restored_forecast_and_a_resumed_stream_give_the_same_bits():
    signal, _ = fitted(Forecast, [waves(300)])
    rows = broken(130)
    again = Forecast.restored(signal.arrays(), signal.normal, VACEConfig(), signal.constants())
    wanted = run(signal, rows)
    np.testing.assert_array_equal(run(again, rows), wanted)
    first, second = signal.begin(), again.begin()
    done = first.add(rows[:77])
    second.resume(first.state())
    parts = [done, second.add(rows[77:]), second.end()]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), wanted)
    layout = Forecast.layout(VACEConfig(), 3, signal.constants())
    assert {name: shape for name, (_, shape) in layout.items()} == {
        name: array.shape for name, array in signal.arrays().items()
    }
