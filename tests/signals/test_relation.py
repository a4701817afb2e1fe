"""What the other channels foretell, against least squares channel by channel."""

from __future__ import annotations

import numpy as np
import pytest
from vace_ad.method.amplitude import SIGNALS, Amplitude

from vace_ad import VACE
from vace_ad.signals.relation import RIDGE, Relation


def together(n: int, seed: int = 0, noise: float = 0.1) -> np.ndarray:
    """Six channels that follow two hidden ones, deviation one."""
    rng = np.random.default_rng(seed)
    hidden = np.stack([np.sin(np.arange(n) / 11), np.cos(np.arange(n) / 29)], axis=1)
    mixed = hidden @ np.random.default_rng(7).normal(size=(2, 6))
    return mixed / mixed.std(axis=0) + noise * rng.normal(size=(n, 6))


def foretold(train: np.ndarray, rows: np.ndarray, channel: int) -> np.ndarray:
    """What a ridge regression on the other channels says of one, by least squares."""
    others = np.delete(np.arange(train.shape[1]), channel)
    x, y = train[:, others], train[:, channel]
    weights = np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(len(others)), x.T @ y)
    return rows[:, others] @ weights


def test_residuals_are_those_of_a_ridge_regression_on_the_others():
    train, rows = together(800), together(130, seed=1)
    relation, held = Relation.fit([train[:300], train[300:]])
    found, held_out = relation.residuals(rows), np.concatenate(held)
    assert [len(part) for part in held] == [300, 500]
    for channel in range(6):
        raw = np.empty(800)
        for block in np.split(np.arange(800), 4):
            others = np.delete(train, block, axis=0)
            raw[block] = train[block, channel] - foretold(others, train[block], channel)
        np.testing.assert_allclose(held_out[:, channel], raw / raw.std(), atol=1e-9)
        wanted = (rows[:, channel] - foretold(train, rows, channel)) / raw.std()
        np.testing.assert_allclose(found[:, channel], wanted, atol=1e-9)


def test_many_channels_and_few_rows_do_not_alarm_by_themselves():
    rows = np.random.default_rng(0).normal(size=(2000, 100))
    amplitude, held = Amplitude.fit([rows[:400]], (96, 32, 8), 4000)
    evidence, _ = amplitude.evidence(rows[400:], amplitude.start())
    at = SIGNALS.index("relation")
    assert evidence[at].mean() < 1.5 * held[0][at].mean()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_a_row_has_the_same_bits_in_every_company(n):
    relation, _ = Relation.fit([together(500)])
    rows = together(300, seed=1)
    assert np.array_equal(relation.residuals(rows[:n]), relation.residuals(rows)[:n])


def test_one_channel_a_constant_one_and_two_that_are_equal():
    alone = together(100)[:, :1]
    assert not Relation.fit([alone])[0].residuals(alone).any()
    rows = together(400)
    rows[:, 1] = 0
    rows[:, 3] = rows[:, 2]
    residuals = Relation.fit([rows])[0].residuals(np.vstack([rows, rows * 1e6]))
    assert np.isfinite(residuals).all()
    assert not residuals[:, 1].any()


def test_a_channel_that_goes_its_own_way_within_its_range_is_found():
    train, rows = together(3000), together(1500, seed=1)
    rows[700:900, 2] = rows[300:500, 2]  # the same curve at another time
    amplitude, _ = Amplitude.fit([train], (96, 32, 8), 4000)
    evidence, _ = amplitude.evidence(rows, amplitude.start())
    at = dict(zip(SIGNALS, evidence[:, 720:880].min(axis=1), strict=True))
    calm = dict(zip(SIGNALS, evidence[:, :600].max(axis=1), strict=True))
    assert at["relation"] > 3 * calm["relation"]
    assert at["level"] <= calm["level"]
    detector = VACE(random_state=0).fit(train)
    blame = detector.explain(rows, 720, 880)
    assert blame.signal == "relation"
    assert blame.top(1)[0][0] == detector.channels_[2]
