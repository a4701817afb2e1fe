"""Events of an iCalendar file (RFC 5545), with their repetitions: planned work, holidays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from vace_ad.errors import TableReadError

MOST_REPEATS = 1_000  # of one event
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_STEPS = {"DAILY": 1, "WEEKLY": 7}


class Property(NamedTuple):
    """A line of an event: its parameters, such as TZID, and its value."""

    parameters: dict[str, str]
    value: str


class Occurrence(NamedTuple):
    """One occurrence of an event, in ISO 8601; without a zone where the file names none."""

    start: str
    end: str
    summary: str


def calendar_events(text: str, path: Path) -> Iterator[Occurrence]:
    """The events of a calendar, repeated daily, weekly or yearly as they say."""
    lines = re.sub(r"\r?\n[ \t]", "", text).splitlines()  # folded lines
    event: dict[str, Property] | None = None
    for line in lines:
        name, _, value = line.partition(":")
        key, *parameters = name.split(";")
        what = key.upper(), value.strip().upper()
        if what == ("BEGIN", "VEVENT"):
            event = {}
        elif what == ("END", "VEVENT") and event is not None:
            yield from _occurrences(event, path)
            event = None
        elif event is not None:
            named = dict(one.split("=", 1) for one in parameters if "=" in one)
            if what[0] == "EXDATE" and "EXDATE" in event:
                value = f"{event['EXDATE'].value},{value}"
            event[what[0]] = Property({k.upper(): v for k, v in named.items()}, value.strip())


def _occurrences(event: dict[str, Property], path: Path) -> Iterator[Occurrence]:
    if "DTSTART" not in event:
        raise TableReadError(f"{path}: an event has no DTSTART; give when it begins")
    begin = event["DTSTART"]
    zone = _zone(begin, path)
    start, length = _stamp(begin.value, path), _length(event, path)
    if length <= timedelta(0):
        raise TableReadError(f"{path}: the event of {begin.value} ends before it begins")
    left_out = {_local(one, zone, path) for one in _values(event, "EXDATE")}
    summary = event["SUMMARY"].value if "SUMMARY" in event else ""
    for at in _starts(start, event, zone, path):
        if at not in left_out:
            first, last = (_words(one, zone) for one in (at, at + length))
            yield Occurrence(first, last, summary)


def _length(event: dict[str, Property], path: Path) -> timedelta:
    """How long an event takes; a whole day where only a date is given."""
    begin = event["DTSTART"].value
    if "DTEND" in event:
        return _stamp(event["DTEND"].value, path) - _stamp(begin, path)
    if "DURATION" in event:
        return _duration(event["DURATION"].value, path)
    if "T" not in begin:
        return timedelta(days=1)
    raise TableReadError(f"{path}: the event of {begin} has no DTEND and no DURATION; give one")


def _starts(
    start: datetime, event: dict[str, Property], zone: ZoneInfo | None, path: Path
) -> Iterator[datetime]:
    """When an event begins, each time."""
    if "RRULE" not in event:
        yield start
        return
    text = event["RRULE"].value
    rule = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    often, days = rule.pop("FREQ", ""), rule.pop("BYDAY", "")
    chosen = days.split(",") if days else []
    until = _local(rule.pop("UNTIL"), zone, path) if "UNTIL" in rule else None
    counts = [rule.pop("INTERVAL", "1"), rule.pop("COUNT", str(MOST_REPEATS))]
    known = often == "YEARLY" or often in _STEPS
    weekly = not chosen or (often == "WEEKLY" and set(chosen) <= set(_DAYS))
    if not known or not weekly or set(rule) - {"WKST"} or not all(n.isdigit() for n in counts):
        raise TableReadError(
            f"{path}: the rule {text!r} is not understood, only daily, weekly and yearly ones are, "
            "with INTERVAL, COUNT, UNTIL and for weeks BYDAY; write the windows out as CSV"
        )
    interval, count = max(int(counts[0]), 1), min(int(counts[1]), MOST_REPEATS)
    found = 0
    for k in range(MOST_REPEATS):
        for at in _turn(start, often, k * interval, chosen):
            if found == count or (until is not None and at > until):
                return
            found += 1
            yield at


def _turn(start: datetime, often: str, k: int, days: list[str]) -> list[datetime]:
    """The k-th day, week or year of a rule."""
    if often == "YEARLY":
        try:
            return [start.replace(year=start.year + k)]
        except ValueError:  # 29 February, or past the last year there is
            return []
    at = start + timedelta(days=_STEPS[often] * k)
    if not days:
        return [at]
    monday = at - timedelta(days=at.weekday())
    every = (monday + timedelta(days=i) for i, day in enumerate(_DAYS) if day in days)
    return [one for one in every if one >= start]


def _values(event: dict[str, Property], name: str) -> list[str]:
    return [one.strip() for one in event[name].value.split(",")] if name in event else []


def _zone(begin: Property, path: Path) -> ZoneInfo | None:
    """The zone that times are in; None: that of the table."""
    if begin.value.endswith("Z"):
        return ZoneInfo("UTC")
    name = begin.parameters.get("TZID", "").strip('"')
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise TableReadError(
            f"{path}: the time zone {name!r} is not known; use a name such as Europe/Berlin"
        ) from None


def _words(time: datetime, zone: ZoneInfo | None) -> str:
    if zone is None:
        return time.isoformat()
    return time.replace(tzinfo=zone).astimezone(UTC).isoformat().replace("+00:00", "Z")


def _local(text: str, zone: ZoneInfo | None, path: Path) -> datetime:
    """A time as the clock of the event shows it."""
    time = _stamp(text, path)
    if zone is None or not text.endswith("Z"):
        return time
    return time.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)


def _stamp(text: str, path: Path) -> datetime:
    for pattern in ("%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            return datetime.strptime(text.removesuffix("Z"), pattern)
        except ValueError:
            continue
    raise TableReadError(f"{path}: {text!r} is not an iCalendar time, such as 20260301T060000Z")


def _duration(text: str, path: Path) -> timedelta:
    found = re.fullmatch(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", text)
    if found is None:
        raise TableReadError(f"{path}: {text!r} is not an iCalendar duration, such as PT8H")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
