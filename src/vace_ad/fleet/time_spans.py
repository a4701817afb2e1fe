"""Short formats of times and time spans of events."""

from __future__ import annotations


def split_offset(stamp: str) -> tuple[str, str]:
    """An ISO time and the offset from UTC at its end, empty where there is none."""
    if len(stamp) > 6 and stamp[-6] in "+-" and stamp[-3] == ":":
        return stamp[:-6], stamp[-6:]
    return stamp, ""


def short_time(stamp: str) -> str:
    """A time without the zeros at its end; a row's number as it is.

    >>> short_time("2026-03-01T08:35:00.000000000+01:00")
    '2026-03-01 08:35 +01:00'
    """
    clock, offset = split_offset(stamp)
    return f"{_trimmed(clock)} {offset}".rstrip()


def short_span(start: str, end: str) -> str:
    """From one time to another, with what both share said once.

    >>> short_span("2026-03-01T08:35:00+01:00", "2026-03-01T09:57:00+01:00")
    '2026-03-01 08:35 – 09:57 +01:00'
    """
    (first, offset), (last, after) = split_offset(start), split_offset(end)
    first, last = _trimmed(first), _trimmed(last)
    if offset != after:  # the clocks changed in between
        return f"{first} {offset} – {last} {after}"
    day, _, clock = last.partition(" ")
    same = clock and first.startswith(f"{day} ")
    return f"{first} – {clock if same else last} {offset}".rstrip()


def _trimmed(clock: str) -> str:
    clock = clock.replace("T", " ")
    if "." in clock:
        clock = clock.rstrip("0").rstrip(".")
    return clock.removesuffix(":00") if clock.count(":") == 2 else clock
