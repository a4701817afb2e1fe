"""Suspected channels of given rows: how far they left their past, and how surprising they are.

Four ratios count: a channel's distance from the median of the rows before, over its recent
deviation and over how far it drifts in as many rows in training; the latter for the first rows
alone, since what moves first is nearer to the cause; and the nats of its cells, which see a channel
that leaves the others within its own range. Each ratio r is a root mean square over the rows and
adds log(1 + r²) / 2: log r where r is large, next to nothing where it is below 1, within the normal
range. A channel that is stuck counts by how much longer it keeps a value than it did before. A
distance of less than a hundredth of the channel's level counts for little: a sensor that hardly
varied in training would otherwise be blamed for its last digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.errors import InputError
from vace_ad.frames.columns import column_of
from vace_ad.frames.segments import missing_cells
from vace_ad.signals.baseline_model import Normal
from vace_ad.wording import plain_text

Array = NDArray[np.float64]

BEFORE = 60  # rows before an event that it is held against
PERIODS = 3  # of the past over which the median of a phase is taken
PAST = 6_000  # rows before an event from which a channel's recent drift is measured
LENGTHS = (1, 4, 12, 40, 120, 400)  # numbers of rows over which drift was measured in training
PLACES = 64  # stretches it was measured on
LEVEL_SHARE = 0.01  # of a channel's level that always counts as noise
FIRST = 30  # rows of an event in which its cause has moved already
STUCK, STUCK_ROWS = 4, 2_000  # times the longest still stretch of those rows
_LEAST = 20  # rows after an event that show whether a channel came back, or before, how it was
MARGIN = 0.1  # of the training range by which a channel may leave it
LINGER = 64  # rows after which other channels no longer follow: two half-lives of the longest past


@dataclass(frozen=True)
class Blame:
    """Each channel's share of a range of rows.

    Attributes
    ----------
    names
        The channels.
    shares
        Their shares, (n_channels,), which sum to 1.
    signal
        The kind of evidence that contributed most.
    """

    names: tuple[str, ...]
    shares: Array  # (n_channels,)
    signal: str | None = None

    def top(self, count: int = 3) -> tuple[tuple[str, float], ...]:
        """Return the `count` channels with the largest shares, largest first, without zeros."""
        order = np.argsort(-self.shares, kind="stable")[:count]
        return tuple((self.names[i], float(self.shares[i])) for i in order if self.shares[i] > 0)

    def __repr__(self) -> str:
        """A table of the ten largest shares."""
        shown = [(plain_text(name), share) for name, share in self.top(10)]
        width = max((len(name) for name, _ in shown), default=0)
        lines = [f"{name:<{width}}  {share:4.0%}" for name, share in shown]
        return "\n".join([*lines, f"led by {self.signal}"] if self.signal else lines)

    def _repr_html_(self) -> str:
        """The same, for notebooks."""
        shown = [(escape(plain_text(name)), share) for name, share in self.top(10)]
        rows = "".join(
            f'<tr><td style="text-align:left">{name}</td><td>{share:.0%}</td></tr>'
            for name, share in shown
        )
        return f"<table><tr><th>channel</th><th>share</th></tr>{rows}</table>"


@dataclass(frozen=True)
class DriftRange:
    """How far channels drift from their recent median in training."""

    largest: Array  # (n_lengths, n_channels), largest mean distance over LENGTHS rows
    deviation: Array  # (n_channels,)

    @classmethod
    def fit(cls, parts: Sequence[Array]) -> Self:
        """Learn from complete training rows."""
        longest = max(parts, key=len)
        largest = np.stack([_excursion(longest, length) for length in LENGTHS])
        mean = np.concatenate(parts).mean(axis=0)
        n = sum(map(len, parts))
        deviation = np.sqrt(sum(((part - mean) ** 2).sum(axis=0) for part in parts) / n)
        return cls(largest, np.asarray(deviation))

    def merged(self, other: DriftRange, weight: float) -> DriftRange:
        """Of these rows and others: as far as either went; deviations by their weight."""
        squares = (1 - weight) * self.deviation**2 + weight * other.deviation**2
        return DriftRange(np.maximum(self.largest, other.largest), np.sqrt(squares))

    def over(self, rows: int) -> Array:
        """How far they drift in `rows` rows, (n_channels,)."""
        place = np.interp(np.log(max(rows, 1)), np.log(LENGTHS), np.arange(len(LENGTHS)))
        low, share = int(place), place - int(place)
        high = min(low + 1, len(LENGTHS) - 1)
        return np.asarray((1 - share) * self.largest[low] + share * self.largest[high])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        return {"largest": self.largest, "deviation": self.deviation}


def suspicion(
    values: NDArray[Any],
    start: int,
    end: int,
    normal: Normal,
    drift_range: DriftRange,
    nats: Array,
    period: int = 0,
) -> Array:
    """How suspicious each channel is in rows [start, end) of a table, (n_channels,).

    `nats` (n, n_channels) are those of the cells in these rows, NaN where they are not known. Where
    the series repeats itself after `period` rows, a channel that is where it was at the same phase
    before has not left its past.
    """
    if not 0 <= start < end <= len(values):
        raise InputError(
            f"rows [{start}, {end}) do not lie in the table's {len(values)} rows; "
            "give 0 ≤ start < end ≤ rows"
        )
    past, event = _known(values[max(0, start - PAST) : start]), _known(values[start:end])
    after = _known(values[end + 5 : end + 5 + BEFORE])
    middle = _median(past[-BEFORE:], normal.mean)
    distance = np.abs(event - middle)  # (n, n_channels)
    if period and len(past) >= 2 * period and not np.isnan(past).any():
        phases = np.arange(len(past), len(past) + len(event))
        distance = np.fmin(distance, np.abs(event - same_phase(past, phases, period)))
    returned = distance
    if len(after) >= _LEAST:  # what lies off both before and after is no new level
        returned = np.fmin(distance, np.abs(event - _median(after, middle)))
    highest = np.nan_to_num(np.abs(event)).max(axis=0)
    floor = LEVEL_SHARE * np.fmax(np.abs(middle), highest) + 1e-9 * normal.scale
    first, deviation = drift_range.over(min(end - start, FIRST)), drift_range.deviation
    if len(past) >= 2 * BEFORE:
        first = np.fmax(first, _excursion(past, min(end - start, FIRST)))
        deviation = _deviation(past, deviation)
    ratios = [
        _size(returned) / np.hypot(deviation, floor),
        _size(distance) / (drift_range.over(end - start) + floor),
        _size(distance[:FIRST]) / (first + floor),
        _size(nats),
    ]
    stuck = _stuck(past[-STUCK_ROWS:], event)
    return np.asarray(np.log1p(np.square(ratios)).sum(axis=0) / 2 + stuck)


def blame(names: Sequence[str], suspicion: Array, signal: str | None = None) -> Blame:
    """Suspicions as shares: what a channel has above the middle one, squared."""
    if len(suspicion) == 1:
        return Blame(tuple(names), np.ones(1), signal)
    above = np.maximum(suspicion - np.median(suspicion), 0) ** 2
    if above.sum() <= 0:
        above = np.ones_like(suspicion)
    return Blame(tuple(names), above / above.sum(), signal)


def _known(values: NDArray[Any]) -> Array:
    """Values as float64, NaN where a cell is missing."""
    return np.where(missing_cells(values), np.nan, values).astype(np.float64)


def _excursion(rows: Array, length: int) -> Array:
    """The largest mean distance of `length` rows from the median of the rows before them."""
    before = max(1, min(BEFORE, len(rows) // 4))
    length = max(1, min(length, len(rows) // 4))
    starts = np.unique(np.linspace(before, len(rows) - length, PLACES).astype(np.intp))
    past = sliding_window_view(rows, before, axis=0)[starts - before]  # (k, n_channels, before)
    middles = _median(np.moveaxis(past, 2, 0), np.zeros(rows.shape[1]))
    found = np.zeros(rows.shape[1])
    mean = _mean if np.isnan(rows).any() else partial(np.mean, axis=0)
    for start, middle in zip(starts.tolist(), middles, strict=True):
        found = np.fmax(found, mean(np.abs(rows[start : start + length] - middle)))
    return found


def _stuck(past: Array, event: Array) -> Array:
    """How much longer a channel stays still than it ever did, on a log scale, beyond `STUCK`.

    A short past says nothing about a longer range.
    """
    still = np.minimum(longest_still(event), len(past))
    return np.asarray(np.log(np.maximum(still / (STUCK * longest_still(past)), 1.0)))


def _median(rows: Array, otherwise: Array) -> Array:
    """The median over rows; `otherwise` where no row is known."""
    if not len(rows):
        return otherwise
    if not np.isnan(rows).any():
        return np.asarray(np.median(rows, axis=0))
    empty = np.isnan(rows).all(axis=0)
    return np.where(empty, otherwise, np.nanmedian(np.where(empty, 0.0, rows), axis=0))


def _mean(rows: Array) -> Array:
    """The mean over known rows; 0 where none is."""
    count = (~np.isnan(rows)).sum(axis=0)
    return np.asarray(np.nansum(rows, axis=0) / np.maximum(count, 1))


def _size(rows: Array) -> Array:
    """The root mean square over known rows; 0 where none is."""
    return np.asarray(np.sqrt(_mean(rows**2)))


def _deviation(rows: Array, otherwise: Array) -> Array:
    known = (~np.isnan(rows)).sum(axis=0)
    return np.where(known > 1, _size(rows - _mean(rows)), otherwise)


def same_phase(past: Array, rows: NDArray[np.intp], period: int) -> Array:
    """The median of the same phase in up to three whole periods of the past, (n, n_channels).

    `rows` are numbered from the first past row; those in the past look before themselves.
    """
    latest = rows - period * np.maximum(-(-(rows - len(past) + 1) // period), 1)
    at = latest - period * np.arange(PERIODS)[:, None]  # (PERIODS, n)
    at = np.where(at >= 0, at, np.maximum(latest, latest % period))
    return np.asarray(np.median(past[at], axis=0))


def longest_still(rows: Array) -> Array:
    """The most rows in a row with one value, (n_channels,); 1 where there are no rows."""
    at = np.arange(len(rows))[:, None]
    moved = np.ones(rows.shape, dtype=bool)
    moved[1:] = ~(rows[1:] == rows[:-1])
    first = np.maximum.accumulate(np.where(moved, at, 0), axis=0)
    return np.asarray((at - first + 1.0).max(axis=0, initial=1.0))


@dataclass(frozen=True)
class Conditions:
    """The range of every channel in training."""

    low: Array  # (n_channels,)
    high: Array  # (n_channels,)

    @classmethod
    def fit(cls, parts: Sequence[Array]) -> Self:
        """Learn from complete training rows."""
        low = np.min([part.min(axis=0) for part in parts], axis=0)
        return cls(low, np.max([part.max(axis=0) for part in parts], axis=0))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        return {"low": self.low, "high": self.high}

    def merged(self, parts: Sequence[Array]) -> Conditions:
        """With the range of new normal rows."""
        new = Conditions.fit(parts)
        return Conditions(np.minimum(self.low, new.low), np.maximum(self.high, new.high))

    def outside(
        self, rows: Array, channels: Sequence[str], watched: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which context cells are beyond training, (n, n_channels).

        Words that training does not know are 0 in all channels of their column, which is marked.
        """
        if watched.all():
            return np.zeros(rows.shape, bool)
        room = MARGIN * (self.high - self.low)
        found = ((rows < self.low - room) | (rows > self.high + room)) & ~watched
        for column in {column_of(channels[i]) for i in np.flatnonzero(~watched).tolist()} - {""}:
            places = [i for i, name in enumerate(channels) if column_of(name) == column]
            found[:, places[0]] |= (rows[:, places] < 0.5).all(axis=1)
        return np.asarray(found)

    def words(self, rows: Array, channels: Sequence[str], watched: NDArray[np.bool_]) -> str:
        """What was outside training in these rows; empty where nothing was."""
        outside = self.outside(rows, channels, watched)
        found = []
        for i in np.flatnonzero(outside.any(axis=0)).tolist():
            if column := column_of(channels[i]):
                found.append(f"{column} with a value never seen")
                continue
            values = rows[outside[:, i], i]
            high = values.max() > self.high[i]
            value, limit = (values.max(), self.high[i]) if high else (values.min(), self.low[i])
            found.append(
                f"{channels[i]} {value:.4g}, trained {'to' if high else 'from'} {limit:.4g}"
            )
        return "; ".join(found)
