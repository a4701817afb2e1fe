"""DQE against a version of loops, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.cases import labelled_scores
from metrics.dqe_oracle import slow_dqe
from vace_ad.errors import InputError
from vace_ad.metrics import dqe


@given(labelled_scores(), st.integers(0, 12))
def test_equals_the_loops(case, near):
    labels, scores = case
    assert dqe(labels, scores, near) == pytest.approx(slow_dqe(labels, scores, near), abs=1e-9)


def test_the_near_zone_is_as_long_as_events_but_a_22nd_of_the_normal_rows_at_most(rng):
    labels = np.zeros(2_000, int)
    labels[500:510] = labels[900:930] = 1
    scores = rng.normal(size=2_000)
    assert dqe(labels, scores) == dqe(labels, scores, near=20)
    labels[:] = 0
    labels[100:1_120] = 1
    assert dqe(labels, scores) == dqe(labels, scores, near=980 // 22)


def found(*stretches):
    labels = np.zeros(1_000, int)
    labels[500:520] = 1
    scores = np.zeros(1_000)
    for start, stop in stretches:
        scores[start:stop] = 1.0
    return dqe(labels, scores, near=40)


def test_an_event_counts_once_however_many_of_its_rows_are_found():
    assert found((500, 520)) == found((505, 506)) == 1.0


def test_near_is_better_than_far():
    assert found((500, 520)) > found((521, 531)) > found((535, 545)) > found((600, 610))
    assert found((600, 610)) == 0.0


def test_scattered_false_alarms_are_worse_than_one():
    one, three = ((700, 730),), ((600, 610), (700, 710), (800, 810))
    assert found((500, 520), *one) > found((500, 520), *three) > 0


def test_constant_scores_find_nothing():
    assert dqe([0, 0, 1, 0, 0], np.full(5, 3.0), near=1) == 0.0


def test_a_bad_length_is_refused():
    with pytest.raises(InputError, match="near is -1"):
        dqe([0, 1], [0.0, 1.0], near=-1)
