"""Counters and histograms as rates since the last reading, and several readings of a cell combined.

Both kinds of OpenTelemetry histograms become counts by bucket: explicit ones by the number of the
bucket, exponential ones by their index, where index i of scale s covers (b^i, b^(i+1)] with
b = 2^(2^-s).
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import fsum, inf, isnan, nan
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
    """Counts by bucket; `bounds` for explicit buckets, `scale` for exponential ones."""

    count: int
    buckets: Counter[int]
    bounds: tuple[float, ...] = ()
    scale: int | None = None
    zero: int = 0  # exponential: observations at zero
    negative: Counter[int] = field(default_factory=Counter)  # by the index of the magnitude


def explicit(point: Any) -> Histogram:
    """A point of a histogram with explicit bounds."""
    return Histogram(point.count, _counted(point), tuple(point.explicit_bounds))


def exponential(point: Any) -> Histogram:
    """A point of an exponential histogram."""
    positive, negative = (_counted(side, side.offset) for side in (point.positive, point.negative))
    return Histogram(
        point.count, positive, scale=point.scale, zero=point.zero_count, negative=negative
    )


def _counted(side: Any, first: int = 0) -> Counter[int]:
    return Counter({first + i: n for i, n in enumerate(side.bucket_counts) if n})


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
        other = (old.bounds, old.scale is None) != (whole.bounds, whole.scale is None)
        if other or since != start or whole.count < old.count:
            begun = max(start, then) if since != start else then
            return whole, (time - begun) / 1e9
        return _difference(whole, old), (time - then) / 1e9


def _difference(new: Histogram, old: Histogram) -> Histogram:
    """The difference of two, at the coarser of two scales."""
    if new.scale is not None and old.scale is not None:
        scale = min(new.scale, old.scale)
        new, old = _coarser(new, scale), _coarser(old, scale)
    return replace(
        new,
        count=new.count - old.count,
        buckets=new.buckets - old.buckets,
        zero=max(0, new.zero - old.zero),
        negative=new.negative - old.negative,
    )


def _coarser(one: Histogram, scale: int) -> Histogram:
    """Each step down in scale joins buckets by two."""
    assert one.scale is not None
    down = one.scale - scale

    def joined(counts: Counter[int]) -> Counter[int]:
        found = Counter[int]()
        for index, n in counts.items():
            found[index >> down] += n
        return found

    return replace(one, scale=scale, buckets=joined(one.buckets), negative=joined(one.negative))


def quantile(one: Histogram, level: float) -> float:
    """The quantile, linear within its bucket; NaN of nothing, as of what no bucket counts."""
    spans = _spans(one)
    total = sum(n for _, _, n in spans)
    if not total:
        return nan
    left = level * total
    for low, high, n in spans:
        if left <= n:
            if low == -inf or high == inf:  # open at one end: the bound that is known
                return high if low == -inf else low
            return low + (high - low) * left / n
        left -= n
    return spans[-1][1] if spans[-1][1] != inf else spans[-1][0]


def _spans(one: Histogram) -> list[tuple[float, float, int]]:
    """Buckets in order, as (lower, upper, count)."""
    if one.scale is None:
        if not one.bounds:
            return []
        edges = [0.0 if one.bounds[0] > 0 else -inf, *one.bounds, inf]
        return [
            (edges[i], edges[i + 1], n)
            for i, n in sorted(one.buckets.items())
            if i < len(edges) - 1
        ]

    def edge(index: int) -> float:
        assert one.scale is not None
        try:
            return float(2.0 ** (index * 2.0**-one.scale))
        except OverflowError:
            return inf

    below = sorted(one.negative.items(), reverse=True)
    spans = [(-edge(i + 1), -edge(i), n) for i, n in below]
    if one.zero:
        spans.append((0.0, 0.0, one.zero))
    return spans + [(edge(i), edge(i + 1), n) for i, n in sorted(one.buckets.items())]
