"""What the other channels foretell, against least squares channel by channel."""

from __future__ import annotations

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.method.amplitude import SIGNALS, Amplitude
from vace_ad.method.relation import RIDGE, Relation


def together(n: int, seed: int = 0, noise: float = 0.1) -> np.ndarray:
    """Six channels that follow two hidden ones, deviation one."""
    rng = np.random.default_rng(seed)
    hidden = np.stack([np.sin(np.arange(n) / 11), np.cos(np.arange(n) / 29)], axis=1)
    mixed = hidden @ np.random.default_rng(7).normal(size=(2, 6))
    return mixed / mixed.std(axis=0) + noise * rng.normal(size=(n, 6))


def test_residuals_are_those_of_a_ridge_regression_on_the_others():
    train, rows = together(800), together(130, seed=1)
    found = Relation.fit([train[:300], train[300:]]).residuals(rows)
    for channel in range(6):
        others = np.delete(np.arange(6), channel)
        x, y = train[:, others], train[:, channel]
        weights = np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(5), x.T @ y)
        unit = np.sqrt(np.mean((y - x @ weights) ** 2))
        wanted = (rows[:, channel] - rows[:, others] @ weights) / unit
        np.testing.assert_allclose(found[:, channel], wanted, atol=1e-9)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_a_row_has_the_same_bits_in_every_company(n):
    relation = Relation.fit([together(500)])
    rows = together(300, seed=1)
    assert np.array_equal(relation.residuals(rows[:n]), relation.residuals(rows)[:n])


def test_one_channel_a_constant_one_and_two_that_are_equal():
    alone = together(100)[:, :1]
    assert not Relation.fit([alone]).residuals(alone).any()
    rows = together(400)
    rows[:, 1] = 0
    rows[:, 3] = rows[:, 2]
    residuals = Relation.fit([rows]).residuals(np.vstack([rows, rows * 1e6]))
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
