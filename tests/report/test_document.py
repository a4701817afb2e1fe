from __future__ import annotations

import numpy as np

from vace_ad.alarms.events import Event
from vace_ad.report import ReportData
from vace_ad.report.formatting import MIN_CONTEXT, surroundings
from vace_ad.report.write import channels_by_blame, typical_values


def test_surroundings_grow_with_the_event_and_stay_in_the_table() -> None:
    assert surroundings(Event(500, 510, 500), 1000) == (500 - MIN_CONTEXT, 510 + MIN_CONTEXT)
    assert surroundings(Event(300, 500, 300), 1000) == (100, 700)
    assert surroundings(Event(0, 900, 0), 1000) == (0, 1000)


def test_typical_values_are_medians_of_before_during_and_after() -> None:
    column = np.repeat([1.0, 5.0, np.nan], 200)
    assert typical_values(column, Event(200, 400, 200)) == [1.0, 5.0, None]


def test_channels_are_ordered_by_blame_weighted_with_severity() -> None:
    events = [
        Event(0, 5, 0, severity=10, shares=(("a", 1.0),)),
        Event(9, 12, 9, severity=90, shares=(("c", 0.6), ("b", 0.4))),
        Event(20, 20, 20, kind="no data"),
    ]
    data = ReportData("t", ["a", "b", "c", "d"], np.zeros((30, 4)), np.zeros(30), 1, events=events)
    assert channels_by_blame(data) == [2, 1, 0, 3]
