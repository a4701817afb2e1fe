from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metrics.cases import labelled_scores, windows
from metrics.tsb_ad_oracle import load_oracle
from vace_ad.metrics import vus


def row(text: str) -> np.ndarray:
    return np.array([int(letter) for letter in text])


@settings(max_examples=80)
@given(labelled_scores(), windows, st.integers(1, 20))
# touches both ends, and every widened event overlaps
@example((row("1001001"), np.array([0.3, 0.1, 0.2, 0.9, 0.1, 0.4, 0.3])), 99, 7)
# one-row events two rows apart: a row is within reach of three
@example((row("0010101000"), np.arange(10) % 4 * 1.0), 8, 10)
@example((row("0101"), np.zeros(4)), 5, 3)
def test_curves_equal_tsb_ad(case: tuple, window: int, thresholds: int) -> None:
    labels, scores = case
    expected = load_oracle().vus(labels, scores, window, thresholds)
    result = vus(labels, scores, window, thresholds, surfaces=True)
    assert result.vus_roc == pytest.approx(expected.vus_roc, abs=1e-9)
    assert result.vus_pr == pytest.approx(expected.vus_pr, abs=1e-9)
    assert result.surfaces is not None
    for mine, theirs in zip(
        result.surfaces, [expected.tpr, expected.fpr, expected.precision], strict=True
    ):
        np.testing.assert_allclose(mine.ravel(), theirs, rtol=0, atol=1e-9)


def test_long_series_with_crowded_events() -> None:
    rng = np.random.default_rng(0)
    labels = np.zeros(1500, dtype=np.int64)
    for start in rng.choice(1500, 25, replace=False):
        labels[start : start + rng.integers(1, 20)] = 1
    scores = rng.normal(size=1500) + labels
    expected = load_oracle().vus(labels, scores, 60, 40)
    result = vus(labels, scores, 60, 40)
    assert result.vus_roc == pytest.approx(expected.vus_roc, abs=1e-9)
    assert result.vus_pr == pytest.approx(expected.vus_pr, abs=1e-9)


def test_perfect_scores_fill_the_volume_at_window_0() -> None:
    labels = row("0011100")
    assert vus(labels, labels, window=0)[:2] == pytest.approx((1, 1))


def test_widening_forgives_a_late_alarm() -> None:
    labels = np.zeros(200, dtype=int)
    labels[100:110] = 1
    late = np.roll(labels, 5)
    assert vus(labels, late, window=20).vus_pr > vus(labels, late, window=0).vus_pr


def test_surfaces_only_on_request() -> None:
    labels = row("0110")
    assert vus(labels, labels).surfaces is None
    surfaces = vus(labels, labels, window=6, thresholds=9, surfaces=True).surfaces
    assert surfaces is not None
    assert surfaces.tpr.shape == surfaces.fpr.shape == (7, 11)
    assert surfaces.precision.shape == (7, 10)


def test_memory_is_of_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    n = 200_000
    labels = np.arange(n) % 100 < 10  # 2,000 events: every row is within reach of two
    scores = rng.normal(size=n)
    tracemalloc.start()
    vus(labels, scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * n  # bytes; thresholds × rows of booleans would be 250
