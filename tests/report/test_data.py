from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vace_ad.errors import InputError
from vace_ad.report import ReportData, ReportEvent


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
        ({"events": [ReportEvent(5, 5, 5)]}, r"event rows \[5, 5\)"),
        ({"events": [ReportEvent(5, 11, 5)]}, r"event rows \[5, 11\)"),
        ({"events": [ReportEvent(5, 7, 7)]}, "row 7, lies outside"),
        ({"events": [ReportEvent(5, 7, 5, kind="odd")]}, "'odd'"),  # type: ignore[arg-type]
        ({"events": [ReportEvent(5, 7, 5, shares=[("c", 1.0)])]}, "blames 'c'"),
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
    assert make(events=[ReportEvent(5, 5, 5, kind="no data")]).events[0].start == 5


def test_units_stand_behind_the_names_everywhere():
    event = ReportEvent(1, 3, 2, shares=[("flow", 0.7), ("b", 0.3)], band={"flow": (0.0, 1.0)})
    values = np.arange(8.0).reshape(4, 2)
    data = ReportData("t", ["flow", "b"], values, np.arange(4.0), 2.0, events=[event])
    shown = data.labelled({"flow": "l/s", "gone": "bar"})
    assert list(shown.channels) == ["flow [l/s]", "b"]
    assert list(shown.events[0].shares) == [("flow [l/s]", 0.7), ("b", 0.3)]
    assert shown.events[0].band == {"flow [l/s]": (0.0, 1.0)}
    assert data.labelled({}) is data
