from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vace_ad.alarms.events import Event
from vace_ad.errors import InputError
from vace_ad.report import Curve, ReportData


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
