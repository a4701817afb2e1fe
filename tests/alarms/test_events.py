from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.events import event_columns, events_from_scores, severity
from vace_ad.alarms.runs import Rules
from vace_ad.alarms.tail import Tail

TIME = (np.datetime64("2026-01-01", "ns") + np.arange(10) * np.timedelta64(1, "m")).astype("M8[ns]")
SCORES = np.array([0, 0, 5, 9, 0, 6, 0, 0, 0, 7], dtype=np.float64)


def test_events_of_scores() -> None:
    tail = Tail.fit(np.random.default_rng(0).exponential(size=2000))
    first, second = events_from_scores(SCORES, 4.0, rules=Rules(join=1), tail=tail, time=TIME)
    assert (first.start, first.end, first.peak, first.score) == (2, 6, 3, 9.0)
    assert (second.start, second.end, second.peak) == (9, 10, 9)
    assert (first.start_time, first.end_time, first.peak_time) == (TIME[2], TIME[5], TIME[3])
    assert first.probability < second.probability < 0.05
    assert 100 > first.severity > second.severity > 0


def test_without_tail_or_time() -> None:
    (event,) = events_from_scores(SCORES, 8.0)
    assert np.isnan(event.severity)
    assert event.start_time is None


def test_severity_scale() -> None:
    assert severity(0.01, 0.01) == 0
    assert severity(0.001, 0.01) == pytest.approx(50)
    assert severity(1e-300, 0.01) < 100
    assert severity(0.5, 0.01) == 0


def test_columns() -> None:
    events = events_from_scores(SCORES, 4.0, time=TIME)
    events[0] = events[0].with_blame([("a", 0.7), ("b", 0.2), ("c", 0.08), ("d", 0.02)], "position")
    columns = event_columns(events)
    assert columns["channels"] == ["a 70%, b 20%, c 8%", "", ""]
    assert columns["signal"][0] == "position"
    assert columns["start_time"].dtype == "datetime64[ns]"
    assert columns["rows"].tolist() == [2, 1, 1]
    assert "start_time" not in event_columns(events_from_scores(SCORES, 4.0))
    assert len(event_columns([])["start"]) == 0
