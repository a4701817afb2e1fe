"""Records: readings from the network, as JSON, CSV or Influx line protocol, checked and bounded."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from vace_ad.frames.line_protocol import field_value, parse_point
from vace_ad.frames.timestamps import EPOCHS
from vace_ad.wording import listed

LONGEST_NAME = 200
# Control and invisible characters, and lone surrogates, which no file can hold.
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)


class Record(NamedTuple):
    """Readings of one entity at one moment: one channel, or many."""

    entity: str
    time: int  # nanoseconds since 1970, UTC
    values: Mapping[str, float]  # by channel; NaN where a cell is empty


class BadRecordError(ValueError):
    """Input that is not a record; the message says why."""


@dataclass(frozen=True)
class Names:
    """Which fields of a record hold its time, entity, channel and value."""

    time: str = "time"
    entity: str = "entity"
    channel: str = "channel"
    value: str = "value"
    fixed: str | None = None  # the entity of records that do not name one


def read_time(value: Any) -> int:
    """Nanoseconds of a time: ISO 8601, or a count since 1970 in s, ms, µs or ns, by its size."""
    if isinstance(value, str):
        try:
            return nanoseconds(datetime.fromisoformat(value.strip()))
        except ValueError:
            pass
    try:
        exact = int(value)
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        try:
            exact, number = 0, float(value)
        except (TypeError, ValueError, OverflowError):
            raise BadRecordError(f"{_short(value)} is not a time") from None
    for low, high, unit in EPOCHS:
        if low <= number < high:
            # int() cuts a fraction off, and float() the last digits of nanoseconds
            return exact * unit if abs(number - exact) < 1e-9 or unit == 1 else round(number * unit)
    raise BadRecordError(f"{_short(value)} is not a time; write ISO 8601 or a count since 1970")


def nanoseconds(moment: datetime) -> int:
    """Nanoseconds since 1970 of a time, which is UTC where it has no zone."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.replace(microsecond=0).timestamp()) * 10**9 + moment.microsecond * 1000


def read_number(value: Any) -> float:
    """A finite number; NaN for an empty cell, for null and for what is not finite."""
    if value is None or value == "":
        return math.nan
    if isinstance(value, str | int | float):  # bool is an int: 0 or 1
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise BadRecordError(f"{_short(value)} is not a number") from None
        return number if math.isfinite(number) else math.nan
    raise BadRecordError(f"{_short(value)} is not a number")


def read_name(value: Any, what: str) -> str:
    """The name of an entity or a channel: short, printable."""
    name = value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    if not name or len(name) > LONGEST_NAME or _CONTROL.search(name):
        raise BadRecordError(
            f"{_short(value)} is not a name of {what}: 1 to {LONGEST_NAME} printable characters"
        )
    return name


def from_object(data: Any, names: Names, now: int | None = None) -> Record:
    """A record from a JSON object, wide (a key for each channel) or long (channel and value).

    Without a time it gets `now`, where that is given.
    """
    if not isinstance(data, Mapping):
        raise BadRecordError(f"expected an object, got {_short(data)}")
    if names.time in data:
        time = read_time(data[names.time])
    elif now is not None:
        time = now
    else:
        raise BadRecordError(
            f"no field {names.time!r} holds the time; the fields are {_listing(data)}"
        )
    entity = read_name(data[names.entity], "an entity") if names.entity in data else names.fixed
    if entity is None:
        raise BadRecordError(
            f"no field {names.entity!r} names the entity; the fields are {_listing(data)}"
        )
    if names.channel in data and names.value in data:
        channel = read_name(data[names.channel], "a channel")
        return Record(entity, time, {channel: read_number(data[names.value])})
    inner = data.get("values")
    cells = inner if isinstance(inner, Mapping) else data
    used = (names.time, names.entity)
    values = {}
    for key, cell in cells.items():
        if cells is data and key in used:
            continue
        try:
            values[read_name(key, "a channel")] = read_number(cell)
        except BadRecordError:
            if not isinstance(cell, str):
                raise
    if cells and not values:
        raise BadRecordError(f"no field holds a number; the fields are {_listing(cells)}")
    return Record(entity, time, values)  # text is not a channel


def from_json(text: str | bytes, names: Names, now: int | None = None) -> list[Record]:
    """The records of a JSON document: an object, or a list of them."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecordError(f"not JSON: {_short(str(error))}") from None
    return [from_object(one, names, now) for one in (data if isinstance(data, list) else [data])]


class CsvRecords:
    """Records from lines of CSV, the first of which is the header."""

    def __init__(self, names: Names, header: Sequence[str] | None = None) -> None:
        self._names, self.header = names, list(header) if header else None

    def add(self, line: str) -> Record | None:
        """The record of a line; None for the header and for empty lines."""
        if not line.strip():
            return None
        try:
            cells = next(csv.reader([line.rstrip("\r\n")]))
        except csv.Error as error:
            raise BadRecordError(f"not CSV: {error}") from None
        if self.header is None:
            self.header = [cell.strip() for cell in cells]
            if self._names.time not in self.header:
                raise BadRecordError(
                    f"the header has no column {self._names.time!r}; it has {_listing(self.header)}"
                )
            return None
        if cells == self.header:  # a rotated file begins with its header again
            return None
        if len(cells) != len(self.header):
            raise BadRecordError(f"got {len(cells)} cells, the header has {len(self.header)}")
        return from_object(dict(zip(self.header, cells, strict=True)), self._names)


def from_csv(lines: Iterable[str], names: Names) -> list[Record]:
    """The records of a CSV document with a header."""
    rows = CsvRecords(names)
    return [record for line in lines if (record := rows.add(line)) is not None]


def from_influx(text: str, names: Names, now: int, unit: int = 1) -> list[Record]:
    """The records of lines of Influx line protocol, without comments and empty lines.

    The entity is the tag `names.entity`, else the fixed one, else the measurement. Channels are
    the numeric fields, with the other tags in front where there are any. `unit` is how many
    nanoseconds a time counts in.
    """
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [_from_point(line, names, now, unit) for line in lines]


def _from_point(line: str, names: Names, now: int, unit: int) -> Record:
    point = parse_point(line)
    if point is None:
        raise BadRecordError(f"not Influx line protocol: {_short(line)}")
    tags = point.tags
    entity = read_name(tags.pop(names.entity, names.fixed or point.measurement), "an entity")
    prefix = "".join(f"{value}." for _, value in sorted(tags.items()))
    values = {
        read_name(prefix + key, "a channel"): read_number(field_value(text))
        for key, text in point.fields
        if not text.startswith('"')  # text is not a channel
    }
    return Record(entity, now if point.time is None else point.time * unit, values)


def _short(value: Any) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def _listing(names: Iterable[Any]) -> str:
    return listed([_short(name) for name in names], 8)
