from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.cases import labelled_predictions
from naive import operating_counts
from vace_ad.errors import InputError
from vace_ad.metrics import Operating, blame_hits, operating, operational


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


@st.composite
def told_series(draw):
    """Labels, events that do not overlap, and rows of live alarms."""
    n = draw(st.integers(1, 400))
    runs = draw(st.lists(st.integers(1, 80), min_size=1, max_size=12))
    labels = np.concatenate([np.full(run, k % 2) for k, run in enumerate(runs)] + [np.zeros(n)])[:n]
    edges = sorted(draw(st.sets(st.integers(0, n), max_size=14)))
    events = list(pairwise(edges))[::2]
    opened = draw(st.lists(st.integers(0, n - 1), max_size=8))
    return labels.astype(int), events, opened, draw(st.sampled_from([0, 5, 48]))


@given(told_series())
def test_equals_the_slow_version(case) -> None:
    labels, events, opened, tolerance = case
    found = operating(labels, events, rate=1e-3, opened=opened, tolerance=tolerance)
    expected = operating_counts(labels.tolist(), events, opened, tolerance)
    for name, value in expected.items():
        assert getattr(found, name) == value, name
    assert found.allowed == pytest.approx(len(labels) * 1e-3)


def test_one_endless_event_wins_nothing() -> None:
    labels = np.zeros(1000, int)
    labels[400:420] = labels[700:720] = 1
    found = operating(labels, [(0, 1000)])
    assert (found.found, found.false_alarms, found.allowed) == (2, 0, None)
    assert found.summary()["normal_rows_in_events"] == 1.0
    assert found.onsets == found.lengths == ()  # it matches no stretch alone


def test_an_alarm_before_the_start_has_no_negative_delay() -> None:
    labels = np.zeros(300, int)
    labels[100:120] = 1
    assert operating(labels, [], opened=[60, 130]).delays == (0,)
    assert operating(labels, [], opened=[51, 130]).delays == (30,)
    assert operating(labels, [], opened=[51, 168]).delays == ()


def test_counts_add_up() -> None:
    labels = np.zeros(500, int)
    labels[100:120] = 1
    one = operating(labels, [(90, 130)], rate=1e-4, opened=[104], blamed=[blame_hits("ab", "b")])
    two = operating(labels, [(104, 114), (400, 410)], rate=1e-4, opened=[400])
    both = (one + two).summary()
    assert (both["events"], both["found"], both["false_alarms"]) == (2, 2, 1)
    assert both["allowed"] == pytest.approx(0.1)
    assert (both["onset_median"], both["onset_early_share"]) == (-3.0, 0.5)
    assert both["length_median"] == pytest.approx(1.25)
    assert (both["live_events"], both["live_found"], both["delay_median"]) == (2, 1, 4.0)
    assert (both["blame_1"], both["blame_3"], both["blamed"]) == (0.0, 1.0, 1)
    without = operating(labels, [])
    assert (one + without).allowed is None
    assert without.summary()["delay_median"] is without.summary()["live_events"] is None


def test_plain_and_back() -> None:
    labels = np.zeros(500, int)
    labels[100:120] = 1
    one = operating(labels, [(90, 130)], rate=1e-4, opened=[104], blamed=[blame_hits([3, 1], {1})])
    assert Operating.from_plain(json.loads(json.dumps(one.to_plain()))) == one


def test_blame_counts_the_first_channels() -> None:
    assert blame_hits(["a", "b", "c", "d", "e", "f"], {"d"}) == (False, False, True)
    assert blame_hits(["a", "b"], ["a"]) == (True, True, True)
    assert blame_hits(["a", "b", "c", "d", "e", "f"], {"f"}) == (False, False, False)
    with pytest.raises(InputError, match="no true channel"):
        blame_hits(["a"], [])


@pytest.mark.parametrize("event", [(-1, 5), (5, 5), (8, 11)])
def test_refuses_events_of_another_table(event) -> None:
    with pytest.raises(InputError, match="same table"):
        operating([0] * 10, [event])
