from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vace_ad.alarms.events import Event
from vace_ad.errors import InputError
from vace_ad.frames.segments import Rules
from vace_ad.report import Curve, ReportData, data
from vace_ad.report.data import make_clock, what_if


def make(**changes: Any) -> ReportData:
    fields: dict[str, Any] = {
        "title": "t",
        "channels": ["a", "b"],
        "values": np.zeros((10, 2)),
        "scores": np.zeros(10),
        "threshold": 1.0,
    }
    return ReportData(**(fields | changes))


def test_the_least_that_is_needed_is_enough() -> None:
    assert make().n_rows == 10


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"values": np.zeros(10)}, r"shape \(10,\)"),
        ({"values": np.zeros((0, 2))}, r"shape \(0, 2\)"),
        ({"channels": ["a"]}, "1 channel names for 2 columns"),
        ({"scores": np.zeros(9)}, r"'scores' has shape \(9,\)"),
        ({"signals": {"position": np.zeros(3)}}, r"'position' has shape \(3,\)"),
        ({"time": np.full(10, np.datetime64("NaT", "ns"))}, "missing stamps"),
        ({"time": np.arange(10)[::-1].astype("datetime64[s]")}, "goes backwards"),
        ({"events": [Event(5, 5, 5)]}, r"event rows \[5, 5\)"),
        ({"events": [Event(5, 11, 5)]}, r"event rows \[5, 11\)"),
        ({"events": [Event(5, 7, 7)]}, "row 7, lies outside"),
        ({"events": [Event(5, 7, 5, kind="odd")]}, "'odd'"),
        ({"events": [Event(5, 7, 5, shares=(("c", 1.0),))]}, "blames 'c'"),
        ({"training": (0, 11)}, r"training rows \[0, 11\)"),
        ({"training": (4, 4)}, "training=None"),
        ({"trajectory": np.zeros((4, 2))}, "both given or neither"),
        ({"trajectory": np.zeros((4, 3)), "trajectory_rows": np.arange(4)}, r"\(k, 2\)"),
        ({"trajectory": np.zeros((1, 2)), "trajectory_rows": np.array([10])}, "outside"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(**changes)


def test_a_gap_between_rows_is_an_event_without_rows() -> None:
    assert make(events=[Event(5, 5, 5, kind="no data")]).events[0].start == 5


def test_a_unit_stands_behind_its_channel():
    values = np.arange(8.0).reshape(4, 2)
    data = ReportData("t", ["flow", "b"], values, np.arange(4.0), 2.0, units={"flow": "l/s"})
    assert [data.label(name) for name in data.channels] == ["flow [l/s]", "b"]


def test_curves_and_units_belong_to_channels():
    line = np.zeros(4)
    values = np.arange(8.0).reshape(4, 2)
    with pytest.raises(InputError, match="'gone' has a curve or a unit"):
        ReportData("t", ["a", "b"], values, line, 2.0, expected={"gone": Curve(line, line, line)})
    with pytest.raises(InputError, match="'a upper' has shape"):
        ReportData("t", ["a", "b"], values, line, 2.0, expected={"a": Curve(line, line[:3], line)})


START = np.datetime64("2026-03-01T00:00", "ns")


def stamps(steps_ms: NDArray[np.int64]) -> NDArray[np.datetime64]:
    return START + np.concatenate([[0], steps_ms.cumsum()]) * np.timedelta64(1, "ms")


def error(time: NDArray[np.datetime64]) -> float:
    made = make_clock(time, len(time))
    ms = (time - START) / np.timedelta64(1, "ms")
    return float(np.abs(np.interp(np.arange(len(time)), made.rows, made.at) - ms).max())


def test_an_even_axis_needs_two_points() -> None:
    made = make_clock(stamps(np.full(9_999, 250)), 10_000)
    assert made.rows.tolist() == [0, 9_999]
    assert made.at.tolist() == [0, 250 * 9_999]
    assert (made.step, made.gap) == (250, 2500)


def test_a_gap_keeps_both_its_ends() -> None:
    steps = np.full(999, 60_000)
    steps[400] = 3_600_000
    made = make_clock(stamps(steps), 1000)
    assert made.rows.tolist() == [0, 400, 401, 999]
    assert error(stamps(steps)) == 0


def test_uneven_stamps_are_exact_and_thinned_only_beyond_the_limit(monkeypatch) -> None:
    rng = np.random.default_rng(1)
    steps = rng.integers(90, 110, 5000)
    steps[[7, 3000]] = 100_000
    assert error(stamps(steps)) == 0
    monkeypatch.setattr(data, "MAX_KNOTS", 100)
    made = make_clock(stamps(steps), 5001)
    assert len(made.rows) < 110
    assert {7, 8, 3000, 3001} <= set(made.rows.tolist())
    assert error(stamps(steps)) < 1000  # of 100 ms steps, 50 rows from one point to the next


def test_without_time_the_axis_counts_rows() -> None:
    made = make_clock(None, 50)
    assert made.origin_ms is None
    assert made.at.tolist() == [0, 49]


def test_one_row_and_equal_stamps_make_an_axis() -> None:
    assert make_clock(None, 1).rows.tolist() == [0]
    assert make_clock(np.full(5, START), 5).step == 1


N = 4000
EVENT = np.array([[1000, 1020]], np.intp)


def hump(scores: np.ndarray, at: int, height: float, rows: int = 20) -> None:
    scores[at : at + rows] += height * np.sin(np.linspace(0.2, np.pi - 0.2, rows))


@pytest.fixture
def scores() -> np.ndarray:
    scores = np.random.default_rng(0).gamma(2, 0.1, N)
    hump(scores, 1000, 9)  # an event
    hump(scores, 2000, 4)  # nearly one
    hump(scores, 3000, 3)
    hump(scores, 100, 4)  # in training
    return scores


def test_without_evidence_nothing_is_told() -> None:
    assert what_if(np.full(9, np.nan), 6.0, Rules(), EVENT[:0]) == []


def test_other_limits_count_events_as_the_rules_do(scores: np.ndarray) -> None:
    tried = what_if(scores, 6.0, Rules(join=5), EVENT, first=500)
    counts = {one.shift: one.events for one in tried}
    assert counts[0.0] == 1
    assert [one.shift for one in tried] == sorted(counts)
    assert next(n for shift, n in counts.items() if -3 < shift < -2.2) == 2
    assert tried[-1].events == 0
    assert max(counts.values()) > 5


def test_the_present_limit_gives_the_events_that_there_are(scores: np.ndarray) -> None:
    scores[1010:1400] = 6.5  # evidence that falls back slowly is no event of its own
    both = np.array([[1000, 1020], [2000, 2020]], np.intp)
    tried = {one.shift: one.events for one in what_if(scores, 6.0, Rules(), both, first=500)}
    assert tried[0.0] == 2
    assert min(n for shift, n in tried.items() if shift < 0) == 2


def test_a_limit_for_each_row_moves_as_a_whole(scores: np.ndarray) -> None:
    line = np.where(np.arange(N) < 2500, 6.0, 2.0)
    both = np.array([[1000, 1020], [3000, 3020]], np.intp)
    tried = {one.shift: one.events for one in what_if(scores, line, Rules(join=5), both, first=500)}
    assert tried[0.0] == 2
    assert tried[max(tried)] == 0


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("D", "1 Mar 2026"),
        ("m", "1 Mar 2026 00:00"),
        ("s", "1 Mar 2026 00:00:00"),
        ("ms", "1 Mar 2026 00:00:00.000"),
    ],
)
def test_a_stamp_is_as_fine_as_the_table(unit: str, said: str) -> None:
    data = table(np.datetime64("2026-03-01", "ns") + np.arange(20) * np.timedelta64(1, unit))
    assert data.stamp(0) == said


def test_a_row_without_time_is_its_number() -> None:
    assert table(None).stamp(7) == "row 7"


def test_an_event_lasts_until_the_end_of_its_last_row_and_a_gap_as_long_as_it_is() -> None:
    time = np.datetime64("2026-03-01", "ns") + np.arange(20) * np.timedelta64(1, "m")
    time[10:] += np.timedelta64(1, "h")
    data = table(time)
    assert data.length(Event(0, 5, 2)) == "5 min"
    assert data.length(Event(10, 10, 10, kind="no data")) == "1 h 1 min"
    assert table(None).length(Event(0, 5, 2)) == "5 rows"


def table(time: np.ndarray | None) -> ReportData:
    return ReportData("t", ["a"], np.zeros((20, 1)), np.zeros(20), 1.0, time=time)
