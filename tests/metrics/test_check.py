"""Bad input: every public measure says what came and what is needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from vace_ad.errors import InputError
from vace_ad.metrics import evaluate, operational, vus

SCORED = pytest.mark.parametrize("measure", [evaluate, vus])


@SCORED
@pytest.mark.parametrize(
    ("labels", "scores", "words"),
    [
        ([0, 0, 0], [1, 2, 3], "no anomalous row among 3.*at least one 1"),
        ([1, 1], [1, 2], "1 on all 2 rows.*at least one 0"),
        ([], [], "no anomalous row among 0"),
        ([0, 1, 0], [1, np.nan, np.nan], r"nan at row 1 \(2 such rows\).*finite"),
        ([0, 1, 0], [1, 2, np.inf], "inf at row 2.*finite"),
        ([0, 1], [1, 2, 3], "got 2 labels and 3 scores"),
        ([0, 1, 2], [1, 2, 3], "2 at row 2.*only 0 and 1"),
        ([0, 1, -1], [1, 2, 3], "-1 at row 2.*only 0 and 1"),
        ([0, 0.5, 1], [1, 2, 3], "0.5 at row 1.*only 0 and 1"),
        ([0, np.nan, 1], [1, 2, 3], "nan at row 1.*only 0 and 1"),
        (["0", "1"], [1, 2], "type <U1.*convert"),
        ([0, 1], ["a", "b"], "type <U1.*real numbers"),
        ([[0], [1]], [1, 2], r"shape \(2, 1\).*one dimension"),
        ([0, 1], [[1], [2]], r"shape \(2, 1\).*one dimension"),
    ],
)
def test_bad_labels_and_scores(
    measure: Callable[..., object], labels: object, scores: object, words: str
) -> None:
    with pytest.raises(ValueError, match=f"(?s){words}") as caught:
        measure(labels, scores)
    assert isinstance(caught.value, InputError)


@SCORED
@pytest.mark.parametrize("window", [-1, 2.5, "auto", None])
def test_bad_window(measure: Callable[..., object], window: object) -> None:
    with pytest.raises(ValueError, match=r"window is .*at least 0"):
        measure([0, 1], [0, 1], window=window)


@SCORED
def test_numpy_window(measure: Callable[..., object]) -> None:
    assert measure([0, 1], [0, 1], window=np.int64(3)) == measure([0, 1], [0, 1], window=3)


def test_bad_thresholds() -> None:
    with pytest.raises(ValueError, match=r"thresholds is 0.*at least 1"):
        vus([0, 1], [0, 1], thresholds=0)


@pytest.mark.parametrize(
    ("predictions", "words"),
    [([0, 1, 1], "3 predictions"), ([0, 3], "predictions hold 3 at row 1")],
)
def test_bad_predictions(predictions: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        evaluate([0, 1], [0, 1], predictions=predictions)
    with pytest.raises(ValueError, match=words):
        operational([0, 1], predictions)


def test_scores_wider_than_their_type() -> None:
    with pytest.raises(ValueError, match=r"wider than float64 can hold.*rescale"):
        evaluate([0, 1], [-1.7e308, 1.7e308])
    assert vus([0, 1], [-1.7e308, 1.7e308], window=0).vus_pr == 1
