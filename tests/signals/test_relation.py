"""Channels that no longer move together."""

from __future__ import annotations

import numpy as np

import naive
from signals.test_normal import together
from signals.toys import fitted, run
from vace_ad import VACE
from vace_ad.signals.level_scale import LevelScale
from vace_ad.signals.relation import Relation


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
    signal, held = fitted(Relation, [rows[:400]])
    assert run(signal, rows[400:]).mean() < 1.5 * held[0].mean()


def test_a_channel_that_goes_its_own_way_within_its_range_is_found():
    train, rows = together(3000), together(1500, seed=1)
    rows[700:900, 2] = rows[300:500, 2]  # the same curve at another time
    relation, level = (run(fitted(kind, [train])[0], rows)[0] for kind in (Relation, LevelScale))
    assert relation[720:880].min() > 3 * relation[:600].max()
    assert level[720:880].min() <= level[:600].max()
    detector = VACE(random_state=0).fit(train)
    found = detector.detect(rows)
    (event,) = (e for e in found.anomalies if e.start < 880 and e.end > 720)
    assert event.signal == "relation"
    blame = detector.explain(rows, 720, 880)
    assert blame.top(1)[0][0] == event.shares[0][0] == detector.channels_[2]
