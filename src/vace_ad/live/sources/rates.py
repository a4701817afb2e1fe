"""Counters as rates, and several readings of one cell combined, for pushed metrics."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping
from hashlib import sha256
from math import fsum, isnan, nan
from typing import Literal

from vace_ad.live.records import LONGEST_NAME, Record

COUNTER = re.compile(r".*_(?:total|count|sum|bucket)")  # by Prometheus's naming of metrics
Several = Literal["mean", "sum", "max", "min"]
SEVERAL: Mapping[Several, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "sum": fsum,
    "max": max,
    "min": min,
}
_MOST = 2_000_000  # counters remembered: names come from the wire


class Rates:
    """The increase per second of each counter between two readings."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._last: dict[Hashable, tuple[int, float]] = {}  # the least recent first
        self.disordered = 0  # readings older than the last one, which have no rate

    def of(self, key: Hashable, time: int, value: float) -> float | None:
        """The rate at a time in nanoseconds; NaN for a first reading, None for an older one.

        A counter that decreases was reset to zero.
        """
        if isnan(value):
            return nan
        before = self._last.get(key)
        if before is not None and time <= before[0]:
            self.disordered += time < before[0]
            return None
        if before is not None:
            del self._last[key]  # to the end
        elif len(self._last) >= self._most:
            del self._last[next(iter(self._last))]
        self._last[key] = time, value
        if before is None:
            return nan
        grown = value - before[1]
        return (value if grown < 0 else grown) / ((time - before[0]) / 1e9)


def channel_of(name: str, labels: Iterable[tuple[str, str]]) -> str:
    """A channel's name, as Prometheus writes a series; of a long one the end is a digest."""
    inside = ",".join(f'{key}="{value}"' for key, value in labels)
    whole = f"{name}{{{inside}}}" if inside else name
    if len(whole) <= LONGEST_NAME:
        return whole
    digest = sha256(whole.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{whole[: LONGEST_NAME - 13]}…{digest}"


def to_records(cells: Iterable[tuple[str, int, str, float]], several: Several) -> list[Record]:
    """Records out of (entity, time, channel, value), a record for each entity and time."""
    rows: dict[tuple[int, str], dict[str, list[float]]] = {}
    for entity, time, channel, value in cells:
        rows.setdefault((time, entity), {}).setdefault(channel, []).append(value)
    return [
        Record(entity, time, {name: _one(values, several) for name, values in row.items()})
        for (time, entity), row in sorted(rows.items())
    ]


def _one(values: list[float], several: Several) -> float:
    if len(values) == 1:
        return values[0]
    known = [value for value in values if not isnan(value)]
    return SEVERAL[several](known) if known else nan
