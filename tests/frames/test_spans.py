"""Files of faults and windows as people write them."""

import numpy as np
import pytest

from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.spans import Span, as_spans, of_equipment, read_spans, rows_of, span_rows

CALENDAR = """BEGIN:VCALENDAR\r
BEGIN:VEVENT\r
DTSTART:20260301T060000Z\r
DTEND:20260301T080000Z\r
RRULE:FREQ=WEEKLY;COUNT=3\r
SUMMARY:filter \r
 service\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20260401\r
DURATION:P1D\r
END:VEVENT\r
END:VCALENDAR\r
"""


def read(tmp_path, text, name="spans.csv"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return read_spans(path)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T00:00:00Z,2026-01-02T00:00:00Z\n",
        "start,end\n2026-01-01T00:00:00Z,2026-01-02T00:00:00Z\n",
        "End;Begin\n2026-01-02T00:00:00Z;2026-01-01T00:00:00Z\n",
    ],
)
def test_start_and_end_with_or_without_a_header(tmp_path, text) -> None:
    (span,) = read(tmp_path, text)
    assert span.times() == (np.datetime64("2026-01-01"), np.datetime64("2026-01-02"))


def test_code_note_and_equipment(tmp_path) -> None:
    spans = read(
        tmp_path, 'start,end,fault code,note,machine\n2026-01-01,2026-01-02,F7,"a, b",pump\n'
    )
    assert spans == [Span("2026-01-01", "2026-01-02", "F7", "a, b", "pump")]
    assert of_equipment(spans, "fan") == []
    assert of_equipment([Span("a", "b")], "fan") == [Span("a", "b")]


def test_what_is_written_is_read_again(tmp_path) -> None:
    spans = [Span("2026-01-01", "2026-01-02", "F7", 'a "b", c', "pump")]
    assert read(tmp_path, span_rows(spans)) == spans


def test_a_calendar_repeats_its_events(tmp_path) -> None:
    spans = read(tmp_path, CALENDAR, "w.ics")
    assert [str(span.times()[0])[:16] for span in spans] == [
        "2026-03-01T06:00",
        "2026-03-08T06:00",
        "2026-03-15T06:00",
        "2026-04-01T00:00",
    ]
    assert spans[0].note == "filter service"


def starts(tmp_path, *lines):
    text = "\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR"])
    return [f"{span.times()[0]}"[:16] for span in read(tmp_path, text, "w.ics")]


def test_a_calendar_of_working_days_in_a_time_zone(tmp_path) -> None:
    """The clock says 6 before and after summer time begins, on 29 March; one day is left out."""
    assert starts(
        tmp_path, "DTSTART;TZID=Europe/Berlin:20260325T060000", "DURATION:PT1H",
        "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=20260406T040000Z",
        "EXDATE;TZID=Europe/Berlin:20260401T060000",
    ) == ["2026-03-25T05:00", "2026-03-30T04:00", "2026-04-06T04:00"]  # fmt: skip


def test_holidays_come_every_year_and_take_a_day(tmp_path) -> None:
    lines = ["DTSTART;VALUE=DATE:20260501", "RRULE:FREQ=YEARLY;COUNT=2"]
    assert starts(tmp_path, *lines) == ["2026-05-01T00:00", "2027-05-01T00:00"]
    (leap, *_) = starts(tmp_path, "DTSTART;VALUE=DATE:20240229", "RRULE:FREQ=YEARLY;COUNT=2")
    assert leap == "2024-02-29T00:00"
    days = read_spans(tmp_path / "w.ics")
    assert days[1].start.startswith("2028-02-29")
    assert days[1].end.startswith("2028-03-01")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no start and end"),
        ("one,two\n2026-01-01,2026-01-02\n", "names no start and end"),
        ("2026-01-01,later\n", "line 1: 'later' is not a time"),
        ("start,end\n2026-01-02,2026-01-01\n", "line 2: .* ends before it begins"),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\n", "no DTSTART"),
        (CALENDAR.replace("DTEND", "X-END"), "no DTEND and no DURATION"),
        (CALENDAR.replace("DTEND:2026", "DTEND:2025"), "ends before it begins"),
        (CALENDAR.replace("DTSTART:2026", "DTSTART;TZID=Mars:2026").replace("000Z", "000"), "Mars"),
        (CALENDAR.replace("COUNT=3", "COUNT=x"), "is not understood"),
        (CALENDAR.replace("COUNT=3", "BYDAY=1MO"), "is not understood"),
        (CALENDAR.replace("WEEKLY", "MONTHLY"), "is not understood"),
        (CALENDAR.replace("P1D", "a day"), "is not an iCalendar duration"),
        (CALENDAR.replace("20260401", "soon"), "is not an iCalendar time"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path, text, words) -> None:
    with pytest.raises(TableReadError, match=words):
        read(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(TableReadError, match="does not exist"):
        read_spans(tmp_path / "none.csv")


def test_rows_of_spans_include_both_ends() -> None:
    time = np.datetime64("2026-01-01", "ns") + np.arange(10) * np.timedelta64(1, "h")
    spans = as_spans([("2026-01-01T02:00", "2026-01-01T04:00"), ("2027-01-01", "2027-01-02")])
    assert rows_of(spans, time, None) == [(2, 5), (10, 10)]
    with pytest.raises(InputError, match="have no time"):
        rows_of(spans, None, None)
