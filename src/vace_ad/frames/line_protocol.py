r"""InfluxDB line protocol: `measurement,tag=value field=1.5,other=2i 1767225600000000000`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from vace_ad.errors import TableReadError
from vace_ad.frames.timestamps import EPOCHS

if TYPE_CHECKING:
    from vace_ad.frames.read import RawFile

# A name with escaped commas, blanks and equal signs; a value in quotes or without blanks.
_NAME = r"(?:\\.|[^,= \\])+"
_VALUE = r'(?:"(?:\\.|[^"\\])*"|[^, "]+)'
_LINE = re.compile(
    rf"((?:\\.|[^, \\])+)((?:,{_NAME}={_NAME})*) +({_NAME}={_VALUE}(?:,{_NAME}={_VALUE})*)"
    r"(?: +(-?\d{1,40}))?\s*"
)
_PAIR = re.compile(rf"({_NAME})=({_VALUE})")
_TAG = re.compile(rf"({_NAME})=({_NAME})")
_TRUE, _FALSE = ("t", "T", "true", "True", "TRUE"), ("f", "F", "false", "False", "FALSE")


class Point(NamedTuple):
    """One line."""

    measurement: str
    tags: dict[str, str]
    fields: list[tuple[str, str]]  # values as written; `field_value` reads them
    time: int | None


def parse_point(line: str) -> Point | None:
    """The point of a line; None for a line that is no line protocol."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    tags = {_plain(k): _plain(v) for k, v in _TAG.findall(match[2])}
    fields = [(_plain(k), v) for k, v in _PAIR.findall(match[3])]
    return Point(_plain(match[1]), tags, fields, int(match[4]) if match[4] else None)


def field_value(text: str) -> float | str:
    """The value of a field as it is written: a number, a Boolean as 0 or 1, or text."""
    if text.startswith('"'):
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    if text in _TRUE or text in _FALSE:
        return float(text in _TRUE)
    try:
        return float(text.rstrip("iu"))
    except ValueError:
        return text


def is_line_protocol(lines: Sequence[str]) -> bool:
    """Whether the first lines of a text are points with a time."""
    points = [line for line in lines[:20] if line.strip() and not line.startswith("#")]
    matches = [_LINE.fullmatch(line) for line in points]
    return bool(points) and all(match is not None and match[4] for match in matches)


def read_line_protocol(file: RawFile) -> pl.DataFrame:
    """A row for each time and set of tags; a column for each tag and each field.

    Fields carry their measurement's name where there are several.
    """
    points: dict[tuple[int, tuple[tuple[str, str], ...]], dict[tuple[str, str], Any]] = {}
    measurements: set[str] = set()
    fields: dict[tuple[str, str], None] = {}
    lines = file.content().decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        point = parse_point(line)
        if point is None or point.time is None:
            raise TableReadError(
                f"{file.name}, line {number} is not a point of line protocol with a time; correct "
                "or remove that line"
            )
        measurements.add(point.measurement)
        row = points.setdefault((point.time, tuple(sorted(point.tags.items()))), {})
        for key, value in point.fields:
            fields[point.measurement, key] = None
            row[point.measurement, key] = field_value(value)
    titles = list(dict.fromkeys(key for _, pairs in points for key, _ in pairs))
    file.check_cells(len(points), len(titles) + len(fields))
    largest = max(abs(stamp) for stamp, _ in points)
    unit = next((unit for least, _, unit in reversed(EPOCHS) if largest >= least), 10**9)
    if largest * unit >= 2**63:
        raise TableReadError(
            f"{file.name} holds the time {largest}, which is not a time since 1970; correct "
            "that line"
        )
    columns: dict[str, Any] = {
        "time": pl.Series([stamp * unit for stamp, _ in points], dtype=pl.Int64)
        .cast(pl.Datetime("ns"))
        .dt.replace_time_zone("UTC")
    }
    for tag in titles:
        columns[tag] = pl.Series([dict(pairs).get(tag) for _, pairs in points], dtype=pl.String)
    for measurement, field in fields:
        cells = [row.get((measurement, field)) for row in points.values()]
        title = field if len(measurements) == 1 else f"{measurement}.{field}"
        words = any(isinstance(cell, str) for cell in cells)
        kind = pl.String if words else pl.Float64
        columns[title] = pl.Series(cells, dtype=kind, strict=False)
    return pl.DataFrame(columns).sort("time", maintain_order=True)


def _plain(text: str) -> str:
    return re.sub(r"\\([,= \\])", r"\1", text)
