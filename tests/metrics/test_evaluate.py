from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metrics.cases import labelled_predictions, labelled_scores
from metrics.tsb_ad_oracle import (
    distance_scores,
    load_oracle,
    read_series,
    residual_scores,
)
from vace_ad.metrics import evaluate, vus

NAMES = [
    "AUC-PR",
    "AUC-ROC",
    "VUS-PR",
    "VUS-ROC",
    "Standard-F1",
    "PA-F1",
    "Event-based-F1",
    "R-based-F1",
    "Affiliation-F",
]


def assert_equal(mine: dict[str, float], theirs: dict[str, float]) -> None:
    assert list(mine) == list(theirs) == NAMES
    assert mine == pytest.approx(theirs, rel=0, abs=1e-9, nan_ok=True)


@settings(max_examples=3)
@given(labelled_scores(), st.integers(0, 4))
@example((np.array([0, 1, 1, 0]), np.zeros(4)), 3)  # constant
@example((np.array([1, 1, 0, 1, 0, 0, 1]), np.array([0, 1, 5, 0, 2, 5, 3.0])), 15)
@example((np.array([0, 1]), np.array([1.0, 0.0])), 0)
def test_the_nine_equal_tsb_ad(case: tuple, window: int) -> None:
    labels, scores = case
    assert_equal(evaluate(labels, scores, window), load_oracle().nine(labels, scores, window))


@settings(max_examples=40)
@given(labelled_scores())
def test_best_thresholds_equal_tsb_ad(case: tuple) -> None:
    """The two measures of runs at many thresholds, whose oracle is quick enough for many cases."""
    labels, scores = case
    oracle, result = load_oracle(), evaluate(labels, scores, 0)
    assert result["R-based-F1"] == pytest.approx(oracle.range_f1(labels, scores), abs=1e-9)
    expected = oracle.affiliation_f(labels, scores)
    assert result["Affiliation-F"] == pytest.approx(expected, abs=1e-9, nan_ok=True)


BORDER = np.array([0, 1, 1, 0, 0, 0, 0, 1, 1, 0])  # affiliation zones meet between rows 4 and 5


@settings(max_examples=50)
@given(labelled_predictions())
@example((np.array([1, 1, 0]), np.array([0, 1.0, 0]), np.array([0, 1, 0])))  # row 0 not adjusted
@example((np.array([0, 1, 1]), np.array([0, 1.0, 0]), np.array([0, 0, 1])))  # last row not seen
@example((np.array([0, 1, 0]), np.array([0, 1.0, 0]), np.array([1, 1, 1])))  # every row predicted
@example((BORDER, np.arange(10.0), np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 0])))
@example((BORDER, np.arange(10.0), np.array([0, 0, 0, 0, 0, 1, 0, 0, 0, 0])))
def test_given_predictions_equal_tsb_ad(case: tuple) -> None:
    labels, scores, predictions = case
    expected = load_oracle().nine(labels, scores, 0, predictions)
    assert_equal(evaluate(labels, scores, 0, predictions), expected)


def test_longer_series_equal_tsb_ad() -> None:
    rng = np.random.default_rng(0)
    labels = np.zeros(700, dtype=np.int64)
    for start in rng.choice(700, 12, replace=False):
        labels[start : start + rng.integers(1, 30)] = 1
    scores = np.convolve(rng.normal(size=700) + labels, np.ones(3), "same")
    assert_equal(evaluate(labels, scores, 7), load_oracle().nine(labels, scores, 7))


# a part of a series in which the oracle takes seconds, and a window
REAL = [
    ("Genesis_id_1", slice(15_300, 16_220), 20),
    ("MSL_id_1", slice(400, 1400), 25),
    ("MSL_id_7", slice(1500, 2625), 23),
    ("MSL_id_15", slice(300, 1096), 60),
    ("SMAP_id_13", slice(2400, 3400), 21),
    ("SMAP_id_26", slice(4200, 5200), 16),
    ("SMD_id_19", slice(600, 2000), 10),
    ("Daphnet_id_1", slice(20_500, 21_300), 18),
    ("GECCO_id_1", slice(16_000, 17_500), 12),
    ("SVDB_id_5", slice(0, 1500), 9),
    ("MITDB_id_4", slice(54_000, 55_200), 15),
]


@pytest.mark.data
@pytest.mark.parametrize(("name", "part", "window"), REAL, ids=[name for name, _, _ in REAL])
def test_real_series_equal_tsb_ad(data_folder: Path, name: str, part: slice, window: int) -> None:
    values, labels, train = read_series(data_folder, name)
    detector = residual_scores if values.shape[1] > 9 else distance_scores
    labels, scores = labels[part], detector(values, train)[part]
    assert 0 < labels.sum() < labels.size
    assert_equal(evaluate(labels, scores, window), load_oracle().nine(labels, scores, window))


def test_float32_scores_meet_the_same_thresholds() -> None:
    rng = np.random.default_rng(3)
    labels = (np.arange(300) % 60 < 9).astype(int)
    scores = rng.random(300).astype(np.float32)
    assert_equal(evaluate(labels, scores, 3), load_oracle().nine(labels, scores, 3))


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64])
def test_any_kind_of_labels_and_predictions(kind: type) -> None:
    labels, scores = np.array([1, 0, 0, 1, 1, 0]), np.array([3, 1, 2, 4, 0, 2])
    predictions = scores > 2
    expected = evaluate(labels, scores, 3, predictions)
    assert evaluate(labels.astype(kind), scores, 3, predictions.astype(kind)) == expected
    assert evaluate(labels.tolist(), scores.tolist(), 3, predictions.tolist()) == expected


def test_vus_is_the_same_by_itself() -> None:
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 500), rng.random(500)
    result, alone = evaluate(labels, scores, 9), vus(labels, scores, 9)
    assert (result["VUS-ROC"], result["VUS-PR"]) == (alone.vus_roc, alone.vus_pr)


def test_needs_neither_torch_nor_scikit_learn() -> None:
    code = (
        "import sys, vace_ad.metrics as m; m.evaluate([0, 1], [0, 1]);"
        "sys.exit(any(name in sys.modules for name in ('torch', 'sklearn', 'polars')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
