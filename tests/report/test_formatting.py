from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.events import Event
from vace_ad.report import ReportData
from vace_ad.report.data import make_clock
from vace_ad.report.formatting import (
    length,
    limit_words,
    number,
    rarity_sentence,
    stamp,
)
from vace_ad.wording import plural


def test_what_is_rarer_than_the_normal_rows_can_show_gets_no_number() -> None:
    assert rarity_sentence(1e-30, 4_176) == "It is rarer than anything in 4,176 normal rows."
    assert rarity_sentence(1 / 830, 4_176).endswith("one as strong about once in 830 rows.")
    assert rarity_sentence(float("nan"), None) == ""


@pytest.mark.parametrize(
    ("value", "said"),
    [(3.0, "3"), (12_345.678, "12,346"), (0.12344, "0.1234"), (1.5e-7, "1.500e-07")],
)
def test_number(value: float, said: str) -> None:
    assert number(value) == said


def test_a_threshold_that_moves_has_two_numbers() -> None:
    assert limit_words(1.9522, 3.8842) == "limit 1.95 at the start, 3.88 at the end"
    assert limit_words(3.4001, 3.3999) == "limit 3.4"
    assert limit_words(float("nan"), float("nan")) == "limit –"


def test_plural() -> None:
    assert (plural(1, "row"), plural(2000, "row")) == ("1 row", "2,000 rows")


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
    assert stamp(data, 0, make_clock(data.time, 20)) == said


def test_a_row_without_time_is_its_number() -> None:
    assert stamp(table(None), 7, make_clock(None, 20)) == "row 7"


def test_an_event_lasts_until_the_end_of_its_last_row_and_a_gap_as_long_as_it_is() -> None:
    time = np.datetime64("2026-03-01", "ns") + np.arange(20) * np.timedelta64(1, "m")
    time[10:] += np.timedelta64(1, "h")
    data = table(time)
    clock = make_clock(time, 20)
    assert length(Event(0, 5, 2), data, clock) == "5 min"
    assert length(Event(10, 10, 10, kind="no data"), data, clock) == "1 h 1 min"
    assert length(Event(0, 5, 2), table(None), make_clock(None, 20)) == "5 rows"


def table(time: np.ndarray | None) -> ReportData:
    return ReportData("t", ["a"], np.zeros((20, 1)), np.zeros(20), 1.0, time=time)
