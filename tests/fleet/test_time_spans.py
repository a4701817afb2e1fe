"""Times for people."""

from __future__ import annotations

import pytest

from vace_ad.fleet.incidents import short_span, short_time

DAY = "2026-03-01T"


@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        ("2026-03-01T08:35:00.000000000", "2026-03-01 08:35"),
        ("2026-03-01T08:35:00.000000000+01:00", "2026-03-01 08:35 +01:00"),
        ("2026-03-01T08:00:00.000000000-03:30", "2026-03-01 08:00 -03:30"),
        ("2026-03-01T08:35:20.500000000", "2026-03-01 08:35:20.5"),
        ("2026-03-01T00:00:10.000000000", "2026-03-01 00:00:10"),
        ("1200", "1200"),
        ("", ""),
    ],
)
def test_a_time_without_its_zeros(stamp: str, words: str) -> None:
    assert short_time(stamp) == words


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (f"{DAY}08:35:00", f"{DAY}09:57:00", "2026-03-01 08:35 – 09:57"),
        (f"{DAY}08:35:00+01:00", f"{DAY}09:57:00+01:00", "2026-03-01 08:35 – 09:57 +01:00"),
        (f"{DAY}23:00:00", "2026-03-02T01:00:00", "2026-03-01 23:00 – 2026-03-02 01:00"),
        (
            "2026-03-29T01:00:00+01:00",
            "2026-03-29T04:00:00+02:00",
            "2026-03-29 01:00 +01:00 – 2026-03-29 04:00 +02:00",
        ),
        ("700", "740", "700 – 740"),
    ],
)
def test_two_times_as_one_span(start: str, end: str, words: str) -> None:
    assert short_span(start, end) == words
