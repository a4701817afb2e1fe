from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.blame import Wander
from vace_ad.alarms.events import Event
from vace_ad.views.band import BANDS, expected_band, wander_of_table

NAMES = ("a", "b")


def rows(n: int = 3000) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([5 + rng.normal(size=n), 100 + 0.1 * rng.normal(size=n)])


def event(start: int, end: int) -> Event:
    return Event(start, end, start, shares=(("b", 0.8), ("a", 0.2)))


def test_normal_rows_lie_in_the_band_and_a_fault_does_not() -> None:
    values = rows()
    wander = Wander.fit([values[:1500]])
    values[2000:2020, 1] += 3
    band = expected_band(values, NAMES, event(2000, 2020), wander, np.zeros(2))
    assert list(band) == ["b", "a"]
    low, high = band["b"]
    assert low < 100 < high < 102
    assert np.mean((values[1500:2000, 1] > low) & (values[1500:2000, 1] < high)) > 0.95
    assert not ((values[2000:2020, 1] > low) & (values[2000:2020, 1] < high)).any()


def test_a_long_event_is_held_against_as_many_rows_before() -> None:
    values = np.column_stack([np.sin(np.arange(4000) / 100), np.zeros(4000)])
    wander = Wander.fit([values[:2000]])
    low, high = expected_band(values, NAMES, event(2700, 3700), wander, np.zeros(2))["a"]
    assert (low + high) / 2 == pytest.approx(0, abs=0.4)  # not where the last 60 rows were


def test_without_rows_before_the_usual_level_is_the_middle() -> None:
    values = rows()
    values[:100, 0] = np.nan
    wander = Wander.fit([values[1000:]])
    low, high = expected_band(values, NAMES, event(50, 60), wander, np.array([7.0, 1.0]))["a"]
    assert (low + high) / 2 == pytest.approx(7)


def test_only_the_first_suspects_get_a_band() -> None:
    names = [f"c{i}" for i in range(40)]
    values = np.random.default_rng(0).normal(size=(500, 40))
    blamed = Event(300, 310, 300, shares=tuple((name, 1 / 40) for name in names))
    band = expected_band(values, names, blamed, Wander.fit([values]), np.zeros(40))
    assert list(band) == names[:BANDS]


def test_the_wander_of_a_table_leaves_events_and_holes_out() -> None:
    values = rows()
    quiet = wander_of_table(values, ()).over(1)
    values[1000:1100] += 1000
    values[5, 0] = np.inf
    assert wander_of_table(values, [Event(1000, 1100, 1000)]).over(1) == pytest.approx(
        quiet, rel=0.5
    )
