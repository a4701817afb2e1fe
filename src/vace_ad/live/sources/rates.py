"""Counters and histograms as rates since the last reading, and several readings of a cell combined.

Both kinds of OpenTelemetry histograms become counts by bucket.
"""

from __future__ import annotations

import re
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from math import fsum, inf, isnan, nan
from operator import itemgetter
from typing import Any, Literal

from vace_ad.live.records import LONGEST_NAME, Record

COUNTER = re.compile(r".*_(?:total|count|sum|bucket)")  # by Prometheus's naming of metrics
Several = Literal["mean", "sum", "max", "min"]
SEVERAL: Mapping[Several, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "sum": fsum,
    "max": max,
    "min": min,
}
_MOST_COUNTERS = 2_000_000  # remembered: names come from the wire
_MOST_HISTOGRAMS = 200_000


class Rates:
    """The increase per second of each counter between two readings."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[int, float]] = {}  # the least recent first

    def of(self, key: Hashable, time: int, value: float) -> float | None:
        """The rate at a time in nanoseconds; NaN for a first reading, None for an older one.

        A counter that decreases was reset to zero.
        """
        if isnan(value):
            return nan
        before = self._last.get(key)
        if before is not None and time <= before[0]:
            return None
        if before is not None:
            del self._last[key]  # to the end
        elif len(self._last) >= _MOST_COUNTERS:
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


@dataclass(frozen=True)
class Histogram:
    """How many observations there were, and how many in each bucket (lower, upper]."""

    count: int
    buckets: Counter[tuple[float, float]]


def explicit(point: Any) -> Histogram:
    """A point of a histogram with explicit bounds."""
    bounds = tuple(point.explicit_bounds)
    edges = (0.0 if bounds[0] > 0 else -inf, *bounds, inf) if bounds else ()
    counts = zip(pairwise(edges), point.bucket_counts, strict=False)
    return Histogram(point.count, Counter({bucket: n for bucket, n in counts if n}))


def exponential(point: Any) -> Histogram:
    """A point of an exponential histogram: bucket i is (b^i, b^(i+1)] with b = 2^(2^-scale)."""

    def edge(index: int) -> float:
        try:
            return float(2.0 ** (index * 2.0**-point.scale))
        except OverflowError:
            return inf

    buckets = Counter({(0.0, 0.0): point.zero_count} if point.zero_count else {})
    for index, n in enumerate(point.positive.bucket_counts, point.positive.offset):
        if n:
            buckets[edge(index), edge(index + 1)] += n
    for index, n in enumerate(point.negative.bucket_counts, point.negative.offset):
        if n:
            buckets[-edge(index + 1), -edge(index)] += n
    return Histogram(point.count, buckets)


class Histograms:
    """The last state of each cumulative histogram."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[int, int, Histogram]] = {}

    def since(
        self, key: Hashable, time: int, start: int, whole: Histogram
    ) -> tuple[Histogram, float] | None:
        """What was observed since the last point, and in how many seconds; None for a first one.

        A histogram that was reset, or whose buckets changed, counts from its own start.
        """
        before = self._last.pop(key, None)
        if before is not None and time <= before[0]:
            self._last[key] = before
            return None
        if len(self._last) >= _MOST_HISTOGRAMS:
            del self._last[next(iter(self._last))]
        self._last[key] = time, start, whole
        if before is None:
            return None
        then, since, old = before
        added = _added(whole, old) if since == start else None
        begun = then if since == start else max(start, then)
        return added or whole, (time - begun) / 1e9


def _added(new: Histogram, old: Histogram) -> Histogram | None:
    """What was observed between two points; None after a reset, and for buckets that do not fit.

    Exponential buckets are joined by two when their scale decreases: old ones lie in new ones.
    """
    if new.count < old.count:
        return None
    wider, before = sorted(new.buckets), Counter[tuple[float, float]]()
    for (low, high), n in old.buckets.items():
        at = bisect_left(wider, high, key=itemgetter(1))
        if at == len(wider) or low < wider[at][0]:
            return None
        before[wider[at]] += n
    return Histogram(new.count - old.count, new.buckets - before)


def quantile(one: Histogram, level: float) -> float:
    """The quantile, linear within its bucket; NaN of nothing, as of what no bucket counts."""
    left, last = level * one.buckets.total(), nan
    for (low, high), n in sorted(one.buckets.items()):
        if low == -inf or high == inf:  # open at one end: the bound that is known
            low = high = high if low == -inf else low
        last = high
        if left <= n:
            return high if low == high else low + (high - low) * left / n
        left -= n
    return last
