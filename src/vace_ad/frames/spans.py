"""Time ranges given by users: past faults, planned maintenance.

A CSV file has a start and an end in each line, and may have a fault code, a note and the equipment,
with or without a header; an iCalendar file has its events, repeated as they say.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError, InputError, TableReadError
from vace_ad.frames.icalendar import calendar_events
from vace_ad.frames.timestamps import moment
from vace_ad.settings import option

FIELDS = ("start", "end", "code", "note", "equipment")
_ALIASES = {
    "start": ("start", "begin", "from", "start_time", "starttime", "dtstart"),
    "end": ("end", "stop", "to", "until", "end_time", "endtime", "dtend"),
    "code": ("code", "fault_code", "faultcode", "fault", "failure", "label"),
    "note": ("note", "notes", "comment", "description", "summary"),
    "equipment": ("equipment", "machine", "asset", "entity", "device"),
}


@dataclass(frozen=True)
class Span:
    """A time range as it was written, both ends included."""

    start: str
    end: str
    code: str = ""
    note: str = ""
    equipment: str = ""

    @property
    def window(self) -> str:
        """The range as a setting `FROM..TO`."""
        return f"{self.start}..{self.end}"

    def times(self, zone: str | None = None) -> tuple[np.datetime64, np.datetime64]:
        """Start and end; in UTC where a zone is known."""
        start, end = moment(self.start, zone), moment(self.end, zone)
        for text, time in ((self.start, start), (self.end, end)):
            if np.isnat(time):
                raise InputError(f"{text!r} is not a time; write 2026-03-01 or 2026-03-01T12:00")
        if end < start:
            raise InputError(f"{self.start} to {self.end}: it ends before it begins")
        return start, end


def parse_range(
    name: str, text: str, zone: str | None, *, open_ended: bool = False
) -> tuple[np.datetime64 | None, np.datetime64 | None]:
    """The times of a setting `FROM..TO`; None for a side left out, where it is `open_ended`.

    A day without an hour is its first moment, so the end is not included.
    """
    start, dots, end = (part.strip() for part in text.partition(".."))
    times = [moment(part, zone) if part else None for part in (start, end)]
    given = [one for one in times if one is not None]
    if not dots or len(given) < (1 if open_ended else 2) or np.isnat(given).any():
        left_out = "; one of them may be left out" if open_ended else ""
        raise ConfigError(
            f"{option(name, text)}: write FROM..TO, such as 2026-01-01..2026-02-01 or "
            f"2026-03-01T06:00..2026-03-01T14:00{left_out}"
        )
    if given[-1] <= given[0] and len(given) == 2:
        raise ConfigError(f"{option(name, text)}: it ends before it begins")
    return times[0], times[1]


def as_spans(given: Any) -> list[Span]:
    """Spans from a file, or from pairs of times."""
    if isinstance(given, str | PathLike):
        return read_spans(Path(given))
    return [
        one if isinstance(one, Span) else Span(*(str(part) for part in tuple(one)[:2]))
        for one in given
    ]


def of_equipment(spans: Iterable[Span], name: str) -> list[Span]:
    """The spans of one machine: those that name it, and those that name none."""
    return [one for one in spans if one.equipment in ("", name)]


def rows_of(
    spans: Sequence[Span], time: NDArray[np.datetime64] | None, zone: str | None
) -> list[tuple[int, int]]:
    """The rows [start, end) of each span; start == end where a table has none of it."""
    if time is None:
        raise InputError("labels are time ranges, and these rows have no time; name its column")
    found = []
    for span in spans:
        start, end = span.times(zone)
        place = np.searchsorted(time, start), np.searchsorted(time, end, side="right")
        found.append((int(place[0]), int(place[1])))
    return found


def read_spans(path: Path) -> list[Span]:
    """The time ranges of a CSV or iCalendar file."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise TableReadError(f"{path} does not exist; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TableReadError(f"{path} cannot be read: {error}") from error
    calendar = "BEGIN:VCALENDAR" in text[:1000].upper()
    if calendar:
        found = [Span(one.start, one.end, note=one.summary) for one in calendar_events(text, path)]
    else:
        found = list(_table(text, path))
    if not found:
        raise TableReadError(f"{path} holds no start and end; write one pair a line: start,end")
    return found


def _table(text: str, path: Path) -> Iterator[Span]:
    lines = [line for line in text.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    delimiter = max(",;\t", key=first.count)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    order: Sequence[str] = FIELDS
    start = 1
    if rows and np.isnat(moment(rows[0][0])):
        order = [_field(cell) for cell in rows.pop(0)]
        start = 2
        if "start" not in order or "end" not in order:
            raise TableReadError(
                f"{path}: its first line names no start and end but {first!r}; name the columns "
                "start,end, or leave the header out"
            )
    for number, row in enumerate(rows, start=start):
        cells = {name: cell for name, cell in zip(order, row, strict=False) if name}
        span = Span(**{"start": "", "end": "", **cells})
        try:
            span.times()
        except InputError as error:
            raise TableReadError(f"{path}, line {number}: {error}") from error
        yield span


def _field(header: str) -> str:
    name = header.strip().lower().replace(" ", "_")
    return next((field for field, names in _ALIASES.items() if name in names), "")


def span_rows(spans: Sequence[Span]) -> str:
    """Spans as CSV with a header, as `read_spans` takes them."""
    text = io.StringIO()
    csv.writer(text).writerows([FIELDS, *(astuple(span) for span in spans)])
    return text.getvalue().replace("\r\n", "\n")  # its own ends of lines, so that \r is quoted
