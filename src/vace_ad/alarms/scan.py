"""One scan over all evidence: W = max(0, W + nats − price) along each line, at a few prices.

A line is one kind of evidence of one channel, or of the whole row, at one price. While W is above
zero the line is on an excursion: it starts at the first row that counted and ends at the row where
W was highest. How high excursions rise on held-out rows, extrapolated by a generalised Pareto law
whose shape all lines of a kind share, tells how high W must be for the budget, spread over all
lines.
Limits follow the stream: each line learns from its own excursions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.constants import (
    HIGH_PRICE,
    LIGHT_SHAPE,
    LOW_PRICE,
    MIDDLE_PRICE,
    PEAKS,
    PRIOR_LINES,
    PRIOR_PEAKS,
    PRIOR_SHAPE,
)
from vace_ad.alarms.evidence import UNIT, Nats, whole

Array = NDArray[np.float64]

KINDS = ("relation", "change", "jump", "stuck", "rows", "burst", "score")  # of lines, in order
WORDS = {
    "relation": "a channel is not where the other channels say it should be",
    "change": "a channel leaves its own recent course, a little for long",
    "jump": "a channel leaves its own recent course, far and at once",
    "stuck": "a channel repeats its value",
    "rows": "many channels are off together for some time",
    "burst": "many channels are off together at once",
    "score": "the score is higher than it was of late",
}
_PRICES = (LOW_PRICE, LOW_PRICE, HIGH_PRICE, MIDDLE_PRICE)  # of the kinds of a channel
_ROW_PRICES = (MIDDLE_PRICE, HIGH_PRICE, MIDDLE_PRICE)  # of those of whole rows
N_CHANNEL_KINDS, N_ROW_KINDS = len(_PRICES), len(_ROW_PRICES)
NEVER = 2**60  # a level that no evidence reaches


def line_of(kind: str, channel: int, n_channels: int) -> int:
    """The line of a kind; `channel` does not matter for whole rows."""
    at = KINDS.index(kind)
    of_channels = N_CHANNEL_KINDS * n_channels
    return at * n_channels + channel if at < N_CHANNEL_KINDS else of_channels + at - N_CHANNEL_KINDS


class Line(NamedTuple):
    """What a line watches."""

    kind: str
    channel: int | None  # None: the whole row


def describe(line: int, n_channels: int) -> Line:
    """The reverse of `line_of`."""
    of_channels = N_CHANNEL_KINDS * n_channels
    if line >= of_channels:
        return Line(KINDS[N_CHANNEL_KINDS + line - of_channels], None)
    return Line(KINDS[line // n_channels], line % n_channels)


def _kinds(n_channels: int) -> NDArray[np.intp]:
    """The place in KINDS of each line."""
    each = np.repeat([n_channels, 1], [N_CHANNEL_KINDS, N_ROW_KINDS])
    return np.repeat(np.arange(len(KINDS)), each)


def prices(n_channels: int) -> Nats:
    """The price of each line, (N_CHANNEL_KINDS · n_channels + N_ROW_KINDS,)."""
    each = np.repeat(np.array(_PRICES), n_channels)
    return whole(np.concatenate([each, _ROW_PRICES]))


@dataclass(frozen=True)
class Tails:
    """How high excursions rise on held-out rows, for each line."""

    level: Nats  # (n_lines,), exceeded by `count` excursions
    excess: Array  # (n_lines,), mean height above it, in 1 / UNIT nats
    count: Array  # (n_lines,)
    shape: Array  # (n_lines,), of the generalised Pareto law of the heights
    n_rows: int  # held out

    @classmethod
    def fit(cls, held_out: Sequence[Nats], idle: NDArray[np.bool_], n_channels: int) -> Self:
        """Learn from nats (n, n_lines) of held-out stretches; `idle` lines never alarm."""
        n_lines = held_out[0].shape[1]
        price = prices(n_channels)
        peaks = _highest(held_out, price)  # (PEAKS + 1, n_lines), highest first
        n_peaks = np.minimum((peaks > 0).sum(axis=0), PEAKS + 1)
        count = np.maximum(n_peaks - 1, 0)
        enough = count >= 3
        level = np.where(enough, peaks[np.maximum(count, 0), np.arange(n_lines)], peaks[0])
        level = np.where(n_peaks > 0, level, UNIT)
        above = np.where(np.arange(len(peaks))[:, None] < count, peaks - level, 0)
        excess = above.sum(axis=0) / np.maximum(count, 1)
        found, shape = np.empty(n_lines), np.empty(n_lines)
        kinds = _kinds(n_channels)
        for kind in np.unique(kinds):  # lines of one kind share what they have in common
            mine = kinds == kind
            known = mine & enough & ~idle
            base = np.maximum(level, UNIT)
            ratio = float(np.median(excess[known] / base[known])) if known.any() else 0.5
            prior = ratio * base[mine]
            weight = np.where(enough[mine], count[mine], 0)
            found[mine] = (weight * excess[mine] + PRIOR_PEAKS * prior) / (weight + PRIOR_PEAKS)
            shape[mine] = _shape(above[:, known] / np.maximum(excess[known], 1), count[known])
        level = np.where(idle, NEVER, level)
        n_rows = sum(map(len, held_out))
        return cls(level, found + 1.0, np.maximum(count, 1).astype(np.float64), shape, n_rows)

    def updated(self, parts: Sequence[Nats], n_channels: int) -> Self:
        """With excursions of new normal rows, (n, n_lines) each."""
        count, height = self.count.copy(), self.count * self.excess
        for found in (heights(part, prices(n_channels), np.int64(0)) for part in parts):
            for line in np.flatnonzero(found.max(axis=0) > self.level).tolist():
                above = _peaks(found[:, line])
                above = above[above > self.level[line]] - self.level[line]
                count[line] += len(above)
                height[line] += above.sum()
        n_rows = self.n_rows + sum(map(len, parts))
        return replace(self, excess=height / count, count=count, n_rows=n_rows)

    def needed(self, rate: float) -> Array:
        """Nats at which each line may alarm under a budget of `rate` alarms a row, (n_lines,).

        The budget is spread evenly over kinds, and that of a kind over its lines.
        """
        kinds = _kinds((len(self.level) - N_ROW_KINDS) // N_CHANNEL_KINDS)
        alive = np.bincount(kinds, self.level < NEVER)
        shares = max(int((alive > 0).sum()), 1) * np.maximum(alive[kinds], 1)
        return np.asarray(np.log(shares / rate))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        counts = np.array([self.n_rows], np.int64)
        return {
            "level": self.level,
            "excess": self.excess,
            "count": self.count,
            "shape": self.shape,
            "n": counts,
        }

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """The reverse of `arrays`."""
        level, excess, count, shape = (arrays[n] for n in ("level", "excess", "count", "shape"))
        sound = level.shape == excess.shape == count.shape == shape.shape and bool(
            (level > 0).all() and (excess > 0).all() and (count > 0).all() and (shape > 0).all()
        )
        if not sound or not arrays["n"][0] > 0:
            raise ValueError("its alarm limits are not positive")
        return cls(level, excess, count, shape, int(arrays["n"][0]))


class Limits:
    """The height at which each line alarms; follows the stream."""

    def __init__(self, tails: Tails, rate: float, follow: bool = True) -> None:
        self._follow = follow
        self.needed = tails.needed(rate)
        self._tails = tails
        self._weight = tails.count + PRIOR_PEAKS
        grow = self._height(self.needed, tails.count / tails.n_rows, tails.excess, tails.shape)
        # Evidence must at least amount to what the budget asks for.
        self.level = np.maximum(tails.level, whole(self.needed) - _bounded(grow))
        self.learned = np.zeros((2, len(self.level)))  # excursions of the stream, their heights
        self.limit = self.level  # (n_lines,)
        self.set(0)

    @staticmethod
    def _height(nats: Array, rate: Array, excess: Array, shape: Array) -> Array:
        above = np.maximum(nats + np.log(rate), 0.0)
        return np.asarray(excess * np.expm1(np.minimum(above * shape, 50.0)) / shape)

    def _law(self, lines: Any, n_rows: int) -> tuple[Array, Array, Array]:
        """Rate above the level, mean excess and shape of lines, stream included."""
        tails, (count, heights) = self._tails, self.learned[:, lines]
        rate = (tails.count[lines] + count) / (tails.n_rows + n_rows)
        weight = self._weight[lines] + count
        excess = (self._weight[lines] * tails.excess[lines] + heights) / weight
        return rate, excess, tails.shape[lines]

    def set(self, n_rows: int) -> None:
        """Set all limits anew, after so many rows of the stream."""
        self.limit = self.level + _bounded(
            self._height(self.needed, *self._law(slice(None), n_rows))
        )

    def learn(self, line: int, top: int, n_rows: int) -> None:
        """Take an excursion that has ended; it counts no higher than the limit."""
        if top <= self.level[line] or not self._follow:
            return
        self.learned[0, line] += 1
        self.learned[1, line] += min(top, int(self.limit[line])) - int(self.level[line])
        height = self._height(self.needed[[line]], *self._law([line], n_rows))
        self.limit[line] = self.level[line] + int(_bounded(height)[0])

    def margin(self, line: int, top: int, n_rows: int) -> float:
        """Nats by which an excursion of this height is rarer than the budget allows."""
        rate, excess, shape = (float(x[0]) for x in self._law([line], n_rows))
        above = max(top - int(self.level[line]), 0) / excess
        return -math.log(rate) + math.log1p(shape * above) / shape - float(self.needed[line])


def _bounded(heights: Array) -> Nats:
    return np.asarray(np.minimum(heights, NEVER), np.int64)


def _shape(above: Array, count: Array) -> float:
    """The shape of a generalised Pareto law that lines of one kind share, by its second moment.

    `above` (PEAKS + 1, n) are heights in each line's mean, `count` (n,) how many each has. Peaks of
    a few lines with a heavy tail are added to them, and a shape up to LIGHT_SHAPE is taken for an
    exponential tail.
    """
    total, few = float(count.sum()), PRIOR_LINES * PEAKS
    square = max(float((above * above).sum()) / total - 1, 1.0) if total else 1.0  # of the spread
    found = (total * (1 - 1 / square) / 2 + few * PRIOR_SHAPE) / (total + few)
    return max(found - LIGHT_SHAPE, 1.0 / (PEAKS + PRIOR_PEAKS))


def heights(nats: Nats, price: Nats, before: Nats | np.int64) -> Nats:
    """W of each row (n, n_lines), from its value before them."""
    total = before + np.cumsum(nats - price, axis=0)
    return np.asarray(total - np.minimum(np.minimum.accumulate(total, axis=0), 0))


def _highest(held_out: Sequence[Nats], price: Nats) -> Nats:
    """The highest peaks of excursions of each line, (PEAKS + 1, n_lines), highest first."""
    n_lines = len(price)
    best = np.zeros((PEAKS + 1, n_lines), np.int64)
    for part in held_out:
        if not len(part):
            continue
        found = heights(part, price, np.zeros(n_lines, np.int64))
        for line in range(n_lines):
            peaks = np.concatenate([best[:, line], _peaks(found[:, line])])
            best[:, line] = np.sort(peaks)[::-1][: PEAKS + 1]
    return best


def _peaks(heights: Nats) -> Nats:
    """The peaks of the excursions of one line, (n,)."""
    up = heights > 0
    starts = np.flatnonzero(up & ~np.concatenate([[False], up[:-1]]))
    return np.maximum.reduceat(heights, starts) if len(starts) else heights[:0]
