"""One scan over all evidence: W = max(0, W + nats − price) along each line, at a few prices.

A line is one kind of evidence of one channel, or the score, at one price. While W is above
zero the line is on an excursion: it starts at the first row that counted and ends at the row where
W was highest. How high excursions rise on held-out rows, extrapolated by a generalised Pareto law
whose shape all lines of a kind share, tells how high W must be for the budget, spread over all
lines.
Limits follow the stream: each line learns from its own excursions.

The score has a law of its own, since held-out scores of short trainings say little: above h nats
over its recent level there are taken to be `SCORE_RATE` / h excursions a row, twice as many as real
series of many kinds have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.constants import (
    CLEAN_SERIES,
    DOUBT,
    HIGH_PRICE,
    LOW_PRICE,
    MIDDLE_PRICE,
    PEAKS,
    PRIOR_PEAKS,
    PRIOR_SHAPE,
    SCORE_PRICE,
    SCORE_RATE,
    SET_ASIDE,
)
from vace_ad.alarms.evidence import UNIT, Nats, whole
from vace_ad.frames.segments import run_edges

Array = NDArray[np.float64]

KINDS = ("relation", "change", "jump", "stuck", "score")  # of lines, in order
WORDS = {
    "relation": "a channel differs from what the other channels predict",
    "change": "a channel drifts from its own forecast: small residuals for a long time",
    "jump": "a channel jumps: one or a few large residuals of its own forecast",
    "stuck": "a channel repeats its value",
    "score": "the anomaly score is far above its recent level",
}
_PRICES = (LOW_PRICE, LOW_PRICE, HIGH_PRICE, MIDDLE_PRICE)  # of the kinds of a channel
N_CHANNEL_KINDS = len(_PRICES)
MOST_PEAKS = 4 * (PEAKS + 1)  # of a line that are kept of a stretch of held-out rows
SHAPES = np.geomspace(0.03, 1.0, 24)  # of the generalised Pareto law, to choose from
NEVER = 2**60  # a level that no evidence reaches


class Line(NamedTuple):
    """The evidence of one kind, of a channel or of the score."""

    kind: str
    channel: int | None  # None: the score


def describe(line: int, n_channels: int) -> Line:
    """What a line watches, by its number."""
    if line == N_CHANNEL_KINDS * n_channels:
        return Line(KINDS[-1], None)
    return Line(KINDS[line // n_channels], line % n_channels)


def _kinds(n_channels: int) -> NDArray[np.intp]:
    """The place in KINDS of each line."""
    return np.append(np.repeat(np.arange(N_CHANNEL_KINDS), n_channels), N_CHANNEL_KINDS)


def prices(n_channels: int) -> Nats:
    """The price of each line, (N_CHANNEL_KINDS · n_channels + 1,)."""
    return whole(np.append(np.repeat(np.array(_PRICES), n_channels), SCORE_PRICE))


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
        found = [Scanned(partial(list, [part]), len(part), n_channels) for part in held_out]
        return cls.of(found, idle)

    @classmethod
    def of(cls, found: Sequence[Scanned], idle: NDArray[np.bool_]) -> Self:
        """The same of stretches that have been scanned."""
        kinds = _kinds(len(idle) // N_CHANNEL_KINDS)
        peaks = [part.highest for part in found if part.n_rows]
        level, excess, count = _law(np.concatenate(peaks), kinds, idle)
        shape = _shapes(peaks, kinds, idle)[kinds]
        n_rows = sum(part.n_rows for part in found)
        number = np.maximum(count, 1).astype(np.float64)
        level[-1], excess[-1], number[-1], shape[-1] = UNIT, UNIT, SCORE_RATE * n_rows, 1.0
        return cls(np.where(idle, NEVER, level), excess, number, shape, n_rows)

    def with_score(self) -> Self:
        """The score, the last line, alarms too."""
        level = self.level.copy()
        level[-1] = UNIT
        return replace(self, level=level)

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
        excess = height / count
        excess[-1], count[-1] = UNIT, SCORE_RATE * n_rows
        return replace(self, excess=excess, count=count, n_rows=n_rows)

    def needed(self, rate: float) -> Array:
        """Nats at which each line may alarm under a budget of `rate` alarms a row, (n_lines,).

        Each kind of evidence may spend all of it, since all look at the same rows. It is spread
        over the lines of a kind.
        """
        kinds = _kinds(len(self.level) // N_CHANNEL_KINDS)
        alive = np.bincount(kinds, self.level < NEVER)
        return np.asarray(np.log(np.maximum(alive[kinds], 1) / rate))

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
    """The height at which each line alarms; follows the stream.

    `limit` is what the budget asks for, `asked` the same in doubt: each weak alarm that the score
    did not confirm, beyond the budget, asks for `DOUBT` nats more of lines other than the score.
    """

    def __init__(self, tails: Tails, rate: float, follow: bool = True) -> None:
        self.needed = tails.needed(rate)
        self._tails = tails
        self._weight = tails.count + PRIOR_PEAKS
        grow = _height(self.needed, tails.count / tails.n_rows, tails.excess, tails.shape)
        # Evidence must at least amount to what the budget asks for.
        self.level = np.maximum(tails.level, whole(self.needed) - _bounded(grow))
        self.learned = np.zeros((2, len(self.level)))  # excursions of the stream, their heights
        self.doubt = 0.0  # nats
        self._follows = np.full(len(self.level), follow)
        self._follows[-1] = False  # the score: its law is that of many series
        self.limit = self.asked = self.level  # (n_lines,)
        self.set(0)

    def _law(self, lines: Any, n_rows: int) -> tuple[Array, Array, Array]:
        """Rate above the level, mean excess and shape of lines, stream included."""
        tails, (count, heights) = self._tails, self.learned[:, lines]
        rate = (tails.count[lines] + count) / (tails.n_rows + n_rows * self._follows[lines])
        weight = self._weight[lines] + count
        excess = (self._weight[lines] * tails.excess[lines] + heights) / weight
        return rate, excess, tails.shape[lines]

    def set(self, n_rows: int) -> None:
        """Set all limits anew, after so many rows of the stream."""
        self.limit = self._heights(slice(None), n_rows, 0.0)
        self._ask(n_rows)

    def _ask(self, n_rows: int) -> None:
        self.asked = self.limit
        if self.doubt:
            self.asked = self._heights(slice(None), n_rows, self.doubt)
            self.asked[-1] = self.limit[-1]

    def _heights(self, lines: Any, n_rows: int, more: float) -> Nats:
        """How high lines must rise for what the budget needs and so many nats more."""
        above = _height(self.needed[lines] + more, *self._law(lines, n_rows))
        return np.asarray(self.level[lines] + _bounded(above))

    def relax(self, n_rows: int, nats: float) -> None:
        """Set all limits anew, with so much less doubt."""
        self.doubt = max(self.doubt - nats, 0.0)
        self.set(n_rows)

    def ask_more(self, n_rows: int) -> None:
        """A weak alarm was not confirmed."""
        if self._follows.any():
            self.doubt += DOUBT
            self._ask(n_rows)

    def learn(self, line: int, top: int, n_rows: int) -> None:
        """Take an excursion that has ended; it counts no higher than the limit."""
        if top <= self.level[line] or not self._follows[line]:
            return
        self.learned[0, line] += 1
        self.learned[1, line] += min(top, int(self.limit[line])) - int(self.level[line])
        self.limit[line] = self._heights([line], n_rows, 0.0)[0]
        self.asked[line] = self._heights([line], n_rows, self.doubt)[0]

    def margin(self, line: int, top: int, n_rows: int) -> float:
        """Nats by which an excursion of this height is rarer than the budget allows."""
        rate, excess, shape = (float(x[0]) for x in self._law([line], n_rows))
        above = max(top - int(self.level[line]), 0) / excess
        return -math.log(rate) + math.log1p(shape * above) / shape - float(self.needed[line])


def _height(nats: Array | float, rate: Array, excess: Array, shape: Array | float) -> Array:
    """How far above its level a line rises as rarely as that, by a generalised Pareto law."""
    above = np.maximum(nats + np.log(rate), 0.0)
    return np.asarray(excess * np.expm1(np.minimum(above * shape, 50.0)) / shape)


def _bounded(heights: Array) -> Nats:
    return np.asarray(np.minimum(heights, NEVER), np.int64)


def _law(
    peaks: Nats, kinds: NDArray[np.intp], idle: NDArray[np.bool_]
) -> tuple[Nats, Array, NDArray[np.intp]]:
    """Level, mean height above it and number of excursions above it of each line.

    From peaks (n, n_lines) of its excursions, 0 where there are fewer. Mean heights are drawn to
    what lines of one kind have in common.
    """
    highest = np.sort(peaks, axis=0)[::-1][: PEAKS + 1]
    n_peaks = (highest > 0).sum(axis=0)
    count = np.maximum(n_peaks - 1, 0)
    enough = count >= 3
    level = np.where(enough, highest[count, np.arange(len(kinds))], highest[0])
    level = np.where(n_peaks > 0, level, UNIT)
    above = np.where(np.arange(len(highest))[:, None] < count, highest - level, 0)
    excess = above.sum(axis=0) / np.maximum(count, 1)
    base, weight = np.maximum(level, UNIT), np.where(enough, count, 0)
    for kind in np.unique(kinds):
        mine = kinds == kind
        known = mine & enough & ~idle
        ratio = float(np.median(excess[known] / base[known])) if known.any() else 0.5
        drawn = weight[mine] * excess[mine] + PRIOR_PEAKS * ratio * base[mine]
        excess[mine] = drawn / (weight[mine] + PRIOR_PEAKS)
    return level, excess + 1.0, count


def _shapes(peaks: Sequence[Nats], kinds: NDArray[np.intp], idle: NDArray[np.bool_]) -> Array:
    """The shape of the generalised Pareto law of each kind of lines.

    The one by which the other stretches make the excursions of a stretch most likely, among them
    some that a heavy tail would give.
    """
    prior = ((np.arange(PRIOR_PEAKS) + 0.5) / PRIOR_PEAKS) ** -PRIOR_SHAPE
    likely = np.tile(_likelihood((prior - 1) / PRIOR_SHAPE).sum(axis=0), (len(KINDS), 1))
    for k, mine in enumerate(peaks):
        others = [each for i, each in enumerate(peaks) if i != k]
        if not others:
            break
        level, excess, _ = _law(np.concatenate(others), kinds, idle)
        above = (mine > level) & ~idle
        found = _likelihood(((mine - level) / excess)[above])
        np.add.at(likely, np.broadcast_to(kinds, above.shape)[above], found)
    return np.asarray(SHAPES[np.argmax(likely, axis=1)])


def _likelihood(heights: Array) -> Array:
    """Log likelihood (n, len(SHAPES)) of heights in units of the scale, under each shape."""
    return np.asarray(-(1 + 1 / SHAPES) * np.log1p(SHAPES * heights[:, None]))


class Scanned:
    """Excursions of a stretch of held-out rows."""

    def __init__(self, nats: Callable[[], Iterable[Nats]], n_rows: int, n_channels: int) -> None:
        """`nats` gives so many rows block by block, (n, n_lines) each, as often as it is called."""
        self._nats, self.n_rows, self._price = nats, n_rows, prices(n_channels)
        self.highest = _highest(self.w())  # (MOST_PEAKS, n_lines)

    def w(self) -> Nats:
        """W of each line, (n_lines, 1 + n_rows), from the 0 before them; not kept, it is large."""
        found, at = np.empty((len(self._price), 1 + self.n_rows), np.int64), 1
        found[:, 0] = 0
        for block in self._nats():
            found[:, at : at + len(block)] = heights(block, self._price, found[:, at - 1]).T
            at += len(block)
        return found


def outlying(held_out: Sequence[Scanned], idle: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Stretches [start, end) of held-out rows that are unlike all others, in order.

    Excursions that one in `CLEAN_SERIES` clean series would show, by a heavy tail fitted without
    the few highest ones of each line. Rows are counted over all of `held_out`.
    """
    peaks = np.sort(np.concatenate([part.highest for part in held_out]), axis=0)[::-1]
    level, excess, count = _law(peaks[SET_ASIDE:], _kinds(len(idle) // N_CHANNEL_KINDS), idle)
    n_rows = sum(part.n_rows for part in held_out)
    rare = math.log(CLEAN_SERIES * len(idle) * n_rows)
    limit = level + _bounded(_height(rare, (count + SET_ASIDE) / n_rows, excess, PRIOR_SHAPE))
    found, first = [], 0
    for part in held_out:
        high = np.flatnonzero((part.highest.max(axis=0) > limit) & ~idle & (count > 0))
        for line, own in zip(high.tolist(), part.w()[high, 1:] if len(high) else (), strict=True):
            for start, end in run_edges(own > 0).tolist():
                last = start + int(own[start:end].argmax())
                if own[last] > limit[line]:
                    found.append((first + start, first + last + 1))
        first += part.n_rows
    return sorted(found)


def heights(nats: Nats, price: Nats, before: Nats | np.int64) -> Nats:
    """W of each row (n, n_lines), from its value before them."""
    if len(nats) == 1:
        return np.asarray(np.maximum(before + (nats - price), 0))
    total = before + np.cumsum(nats - price, axis=0)
    return np.asarray(total - np.minimum(np.minimum.accumulate(total, axis=0), 0))


def _highest(w: Nats) -> Nats:
    """The highest peaks of excursions of each line (n_lines, n), (MOST_PEAKS, n_lines).

    Lines begin with 0, so that they can be looked at end to end.
    """
    up = w.ravel() > 0
    starts = np.flatnonzero(up[1:] > up[:-1]) + 1
    peaks = np.split(np.maximum.reduceat(w.ravel(), starts),
                     np.searchsorted(starts, np.arange(1, len(w)) * w.shape[1]))  # fmt: skip
    best = np.zeros((MOST_PEAKS, len(w)), np.int64)
    for line, own in enumerate(peaks):
        highest = np.sort(own)[-MOST_PEAKS:]
        best[: len(highest), line] = highest
    return best


def _peaks(scanned: Nats) -> Nats:
    """The peaks of the excursions of one line, (n,)."""
    starts = run_edges(scanned > 0)[:, 0]
    return np.maximum.reduceat(scanned, starts) if len(starts) else scanned[:0]
