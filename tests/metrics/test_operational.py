from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from metrics.cases import labelled_predictions
from vace_ad.metrics import operational


def rows(text: str) -> np.ndarray:
    return np.array([int(letter) for letter in text])


def test_counts_and_delays() -> None:
    result = operational(
        rows("0111000111000011"),
        rows("1001010111000000"),
        step_seconds=10,
    )
    assert (result.events, result.events_found, result.events_missed) == (3, 2, 1)
    assert (result.alarms, result.false_alarms) == (4, 2)
    assert result.delays == (2, 0)
    assert result.median_delay_seconds == 10
    assert result.worst_delay_seconds == 20
    assert result.false_alarms_per_day == pytest.approx(2 / (8 * 10 / 86_400))
    assert type(result.false_alarms_per_day) is float  # not of NumPy: it goes into JSON


def test_alarm_that_was_on_before_the_event() -> None:
    result = operational(rows("000110"), rows("011100"))
    assert result.delays == (0,)
    assert result.false_alarms == 0


def test_without_step_there_are_no_times() -> None:
    result = operational(rows("0110"), rows("0010"))
    assert result.false_alarms_per_day is None
    assert result.median_delay_seconds is result.worst_delay_seconds is None
    assert result.delays == (1,)


def test_series_without_events() -> None:
    result = operational(rows("0000"), rows("0101"), step_seconds=21_600)
    assert (result.events, result.false_alarms, result.false_alarms_per_day) == (0, 2, 2)
    assert result.median_delay_seconds is None


def test_series_without_normal_rows() -> None:
    assert operational(rows("111"), rows("010"), step_seconds=1).false_alarms_per_day is None


@given(labelled_predictions())
def test_row_by_row(case: tuple) -> None:
    labels, _, predictions = case
    result = operational(labels, predictions)

    def runs(values: np.ndarray) -> list[range]:
        edges = np.flatnonzero(np.diff(values, prepend=0, append=0)).tolist()
        return [range(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]

    hits = [[i - event[0] for i in event if predictions[i]] for event in runs(labels)]
    assert result.delays == tuple(hit[0] for hit in hits if hit)
    assert result.events_missed == sum(not hit for hit in hits)
    assert result.false_alarms == sum(
        not any(labels[i] for i in alarm) for alarm in runs(predictions)
    )


@pytest.mark.parametrize("step", [0, -1.0, float("nan"), float("inf")])
def test_bad_step(step: float) -> None:
    with pytest.raises(ValueError, match="step_seconds"):
        operational([0, 1], [0, 1], step_seconds=step)
