"""Stretches of time that people wrote down: past faults, planned maintenance.

A CSV file has a start and an end in each line, and may have a fault code, a note and the equipment,
with or without a header; an iCalendar file has its events, repeated daily or weekly as they say.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.timestamps import moment

FIELDS = ("start", "end", "code", "note", "equipment")
_ALIASES = {
    "start": ("start", "begin", "from", "start_time", "starttime", "dtstart"),
    "end": ("end", "stop", "to", "until", "end_time", "endtime", "dtend"),
    "code": ("code", "fault_code", "faultcode", "fault", "failure", "label"),
    "note": ("note", "notes", "comment", "description", "summary"),
    "equipment": ("equipment", "machine", "asset", "entity", "device"),
}
MOST_REPEATS = 1_000  # of one iCalendar event


@dataclass(frozen=True)
class Span:
    """From the start to the end, both included, as they were written."""

    start: str
    end: str
    code: str = ""
    note: str = ""
    equipment: str = ""

    @property
    def window(self) -> str:
        """The stretch as settings have it."""
        return f"{self.start}..{self.end}"

    def times(self, zone: str | None = None) -> tuple[np.datetime64, np.datetime64]:
        """Start and end; in UTC where a zone is known."""
        start, end = moment(self.start, zone), moment(self.end, zone)
        for text, time in ((self.start, start), (self.end, end)):
            if np.isnat(time):
                raise InputError(f"{text!r} is no time; write 2026-03-01 or 2026-03-01T12:00")
        if end < start:
            raise InputError(f"{self.start} to {self.end}: it ends before it begins")
        return start, end


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
        raise InputError("labels are stretches of time, and these rows have none; name the time")
    found = []
    for span in spans:
        start, end = span.times(zone)
        place = np.searchsorted(time, start), np.searchsorted(time, end, side="right")
        found.append((int(place[0]), int(place[1])))
    return found


def read_spans(path: Path) -> list[Span]:
    """The stretches of a CSV or iCalendar file."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise TableReadError(f"{path} does not exist; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TableReadError(f"{path} cannot be read: {error}") from error
    calendar = "BEGIN:VCALENDAR" in text[:1000].upper()
    found = list(_calendar(text, path) if calendar else _table(text, path))
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


def _calendar(text: str, path: Path) -> Iterator[Span]:
    lines = re.sub(r"\r?\n[ \t]", "", text).splitlines()  # folded lines
    event: dict[str, str] | None = None
    for line in lines:
        name, _, value = line.partition(":")
        key = name.partition(";")[0].upper()
        if (key, value.upper()) == ("BEGIN", "VEVENT"):
            event = {}
        elif (key, value.upper()) == ("END", "VEVENT") and event is not None:
            yield from _repeated(event, path)
            event = None
        elif event is not None:
            event[key] = value.strip()


def _repeated(event: dict[str, str], path: Path) -> Iterator[Span]:
    """An event of a calendar, as often as it comes."""
    if "DTSTART" not in event or not {"DTEND", "DURATION"} & set(event):
        raise TableReadError(f"{path}: an event has no DTSTART, or no DTEND; give both")
    start = _stamp(event["DTSTART"], path)
    length = _duration(event["DURATION"], path) if "DTEND" not in event else (
        _stamp(event["DTEND"], path) - start
    )  # fmt: skip
    rule = dict(part.split("=", 1) for part in event.get("RRULE", "").split(";") if "=" in part)
    step, count, until = timedelta(0), 1, None
    if rule:
        unit = {"DAILY": 1, "WEEKLY": 7}.get(rule.pop("FREQ", ""))
        step = timedelta(days=(unit or 0) * int(rule.pop("INTERVAL", "1")))
        count = int(rule.pop("COUNT", MOST_REPEATS))
        until = _stamp(rule.pop("UNTIL"), path) if "UNTIL" in rule else None
        if unit is None or set(rule) - {"WKST"}:
            raise TableReadError(
                f"{path}: the rule {event['RRULE']!r} is not understood, only daily and weekly "
                "ones are, with INTERVAL, COUNT and UNTIL; write the windows out as CSV"
            )
    zone = "Z" if event["DTSTART"].endswith("Z") else ""
    for k in range(min(count, MOST_REPEATS)):
        at = start + k * step
        if until is not None and at > until:
            return
        first, last = (f"{one.isoformat()}{zone}" for one in (at, at + length))
        yield Span(first, last, note=event.get("SUMMARY", ""))


def _stamp(text: str, path: Path) -> datetime:
    for pattern in ("%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            return datetime.strptime(text.removesuffix("Z"), pattern)
        except ValueError:
            continue
    raise TableReadError(f"{path}: {text!r} is no time of a calendar, such as 20260301T060000Z")


def _duration(text: str, path: Path) -> timedelta:
    found = re.fullmatch(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", text)
    if found is None:
        raise TableReadError(f"{path}: {text!r} is no duration of a calendar, such as PT8H")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def span_rows(spans: Sequence[Span]) -> str:
    """Spans as CSV with a header, as `read_spans` takes them."""
    lines = [",".join(FIELDS)]
    for span in spans:
        cells = [str(getattr(span, name)) for name in FIELDS]
        lines.append(",".join(f'"{c.replace(chr(34), chr(34) * 2)}"' if _quoted(c) else c
                              for c in cells))  # fmt: skip
    return "\n".join(lines) + "\n"


def _quoted(cell: str) -> bool:
    return any(sign in cell for sign in ',"\n\r')
