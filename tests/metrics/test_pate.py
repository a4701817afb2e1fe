"""PATE against a version of loops, and what it is for."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.cases import labelled_scores
from metrics.pate_oracle import slow_pate
from vace_ad.errors import InputError
from vace_ad.metrics import pate

lengths = st.integers(0, 12)


@given(labelled_scores(), lengths, lengths, st.integers(1, 3))
def test_every_threshold_equals_the_loops(case, early, late, splits):
    labels, scores = case
    expected = slow_pate(labels, scores, early, late, splits)
    assert pate(labels, scores, early, late, splits, None) == pytest.approx(expected, abs=1e-9)


@given(labelled_scores(), lengths, lengths, st.sampled_from([1, 2, 7, 250]))
def test_percentiles_as_thresholds_equal_the_loops(case, early, late, thresholds):
    labels, scores = case
    expected = slow_pate(labels, scores, early, late, 1, thresholds)
    found = pate(labels, scores, early, late, thresholds=thresholds)
    assert found == pytest.approx(expected, abs=1e-9)


def test_long_events_are_cut_into_parts(monkeypatch, rng):
    monkeypatch.setattr(sys.modules["vace_ad.metrics.pate"], "_CELLS", 100)
    labels = np.zeros(300, int)
    labels[50:120] = labels[200:290] = 1
    scores = rng.normal(size=300) + labels
    expected = slow_pate(labels, scores, 10, 10)
    assert pate(labels, scores, 10, 10, thresholds=None) == pytest.approx(expected, abs=1e-9)


def test_near_is_better_than_far_and_early_is_better_than_late():
    labels = np.zeros(400, int)
    labels[200:220] = 1

    def found(start):
        scores = np.zeros(400)
        scores[start : start + 10] = 1.0
        return pate(labels, scores, early=40, late=40)

    assert found(200) > found(205) > found(210) > found(225) > found(250) > found(300)
    assert found(300) == pytest.approx(found(350))  # both out of reach


def test_constant_scores_give_a_low_value_and_no_warning():
    labels = [0, 0, 1, 0, 0, 0, 0, 0]
    assert pate(labels, np.zeros(8), 0, 0) == pytest.approx((1 + 1 / 8) / 2)  # as a trapezoid


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"early": -1}, "early is -1"),
        ({"late": 1.5}, "late is 1.5"),
        ({"splits": 0}, "splits is 0"),
        ({"thresholds": 0}, "thresholds is 0"),
    ],
)
def test_bad_settings_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        pate([0, 1], [0.0, 1.0], **given)
