"""Each measure on cases small enough to work out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vace_ad.metrics import evaluate


def measure(name: str, labels: str, predictions: str) -> float:
    y, p = (np.array([int(letter) for letter in text]) for text in (labels, predictions))
    return evaluate(y, p, 0, p)[name]


def f(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall)


def test_areas_with_a_tie() -> None:
    result = evaluate([0, 1, 1, 0], [0.1, 0.5, 0.9, 0.5], 0)
    assert result["AUC-ROC"] == pytest.approx(7 / 8)  # of four pairs three right, one a tie
    assert result["AUC-PR"] == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)


def test_standard_f1() -> None:
    assert measure("Standard-F1", "0110", "0011") == pytest.approx(f(1 / 2, 1 / 2))
    assert measure("Standard-F1", "0110", "0000") == 0


def test_point_adjustment_fills_the_event() -> None:
    assert measure("PA-F1", "0111100", "0001001") == pytest.approx(f(4 / 5, 1))


def test_point_adjustment_stops_before_row_0() -> None:
    assert measure("PA-F1", "11100", "00100") == pytest.approx(f(1, 2 / 3))


def test_event_based() -> None:
    # one of two events found; three of four predicted rows are right
    assert measure("Event-based-F1", "01110110", "11110000") == pytest.approx(f(3 / 4, 1 / 2))


def test_event_based_ignores_the_last_row() -> None:
    assert measure("Event-based-F1", "00011", "00001") == 0


def test_range_based() -> None:
    # the event's six rows: four predicted, in two runs; the run outside it is wrong
    recall = 0.2 + 0.8 * 4 / 6 / 2
    precision = (1 + 1 + 0) / 3
    assert measure("R-based-F1", "0111111000", "0110110010") == pytest.approx(f(precision, recall))


def test_range_based_of_one_run_over_two_events() -> None:
    recall = 0.2 + 0.8 * 1
    precision = 4 / 6 / 2
    assert measure("R-based-F1", "0110110", "1111110") == pytest.approx(f(precision, recall))


def test_range_based_of_predicting_everything() -> None:
    assert measure("R-based-F1", "0110", "1111") == 0


def test_affiliation_of_a_near_miss() -> None:
    # zone [0, 8), event [3, 5), prediction [5, 6). Precision: mean over d in [0, 1] of
    # 1 - (2 + 2 d) / 8. Recall: mean over d in [0, 2] of 1 - 2 d / 8.
    precision = 1 - 3 / 8
    recall = 1 - 2 / 8
    assert measure("Affiliation-F", "00011000", "00000100") == pytest.approx(f(precision, recall))


def test_affiliation_recall_near_the_end_of_a_zone() -> None:
    # zone [0, 6), event [1, 5), prediction [5, 6): farther than 2.5 from the prediction, the zone's
    # left end is nearer. Mean over d in [0, 4] of 1 - (d + min(d, 5 - d)) / 6.
    precision = 1 - (4 + 1) / 6
    recall = 1 - (2.5**2 + 5 * 1.5) / 4 / 6
    assert measure("Affiliation-F", "011110", "000001") == pytest.approx(f(precision, recall))


@pytest.mark.parametrize("predictions", ["0000100000", "0000010000"])
def test_affiliation_of_a_prediction_that_ends_at_the_border(predictions: str) -> None:
    # zones [0, 5) and [5, 10): the prediction touches the other zone, but does not reach into it,
    # so that zone has no precision and its event no recall. In its own, with the event at distance
    # 1 to 2: precision mean of 1 - (2 + d + 1) / 5, recall mean over d in [1, 3] of
    # 1 - (d + min(d, 4 - d)) / 5.
    precision = 1 - 4.5 / 5
    recall = (1 - 7 / 2 / 5 + 0) / 2
    assert measure("Affiliation-F", "0110000110", predictions) == pytest.approx(
        f(precision, recall)
    )


def test_affiliation_of_the_truth_and_of_nothing() -> None:
    assert measure("Affiliation-F", "0110010", "0110010") == pytest.approx(1)
    assert math.isnan(measure("Affiliation-F", "0110010", "0000000"))
