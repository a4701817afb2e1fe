"""Channels that no longer move together."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from signals.test_baseline_model import together
from signals.toys import fitted, run
from vace_ad import VACE
from vace_ad.signals.window_signal import LevelScale, Relation


def test_evidence_equals_loops():
    train, rows = together(260), together(120, seed=1)
    rows[50:80, 2] = rows[10:40, 2]
    signal, _ = fitted(Relation, [train], patch_length=24, drift_half_life=90)
    own = naive.scaled(train, train)
    held, unit = naive.held_out_residuals(own)
    left = naive.residuals(own, naive.scaled(train, rows), unit)
    wanted = sum(0.5 * naive.window_evidence(held, left, 24, part, 90)[1] for part in (1, 3))
    assert wanted.max() > 0.3
    np.testing.assert_allclose(run(signal, rows)[0], wanted, atol=1e-8)


def test_many_channels_and_few_rows_do_not_alarm_by_themselves():
    rows = np.random.default_rng(0).normal(size=(2000, 100))
    signal, without = fitted(Relation, [rows[:400]])
    unseen = run(without[3], rows[:400])[0, 300:].mean()
    assert run(signal, rows[400:]).mean() < 1.5 * unseen


def own_way() -> np.ndarray:
    """Rows whose channel 2 shows, from row 700 to 900, its curve of another time."""
    rows = together(1500, seed=1)
    rows[700:900, 2] = rows[300:500, 2]
    return rows


@pytest.fixture(scope="module")
def detector():
    return VACE(random_state=0).fit(together(3000))


def test_a_channel_that_goes_its_own_way_within_its_range_is_found(detector):
    train, rows = together(3000), own_way()
    relation, level = (run(fitted(kind, [train])[0], rows)[0] for kind in (Relation, LevelScale))
    assert relation[720:880].min() > 3 * relation[:600].max()
    assert level[720:880].min() <= level[:600].max()
    found = detector.detect(rows)
    event = max(found.anomalies, key=lambda event: event.severity)
    assert (found.scores > found.limits)[720:880].all()
    assert detector.explain(rows, 720, 880).top(1)[0][0] == detector.channels_[2]
    assert event.shares[0][0] == detector.channels_[2]


def test_the_event_of_such_a_channel_lies_where_the_fault_is(detector):
    event = max(detector.detect(own_way()).anomalies, key=lambda event: event.severity)
    assert event.start < 880
    assert event.end > 720
