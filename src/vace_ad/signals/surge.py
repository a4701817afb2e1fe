"""Surge: many channels deviate at once, relative to the recent mean.

The other signals average over time, because one row of a few channels says little. One row of
hundreds of channels is an average in itself: its length hardly varies in normal operation, and a
fault of a few rows, which windows blur, stands out in it at once. So this evidence is not averaged,
and it counts the more the more channels there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.baseline_model import within
from vace_ad.signals.incremental import Update
from vace_ad.signals.protocol import (
    Arrays,
    Evidence,
    Fitted,
    NumbersSignal,
    Training,
    prefixed,
    under,
)
from vace_ad.signals.smoothing import PastAverage

Array = NDArray[np.float64]

FEWEST = 32  # channels; the evidence of fewer would count next to nothing
FASTER = 16  # half-lives of the running mean in a drift half-life
AT_ONCE = 512  # rows measured together: they stay in the processor's cache


@dataclass(frozen=True)
class Surge(NumbersSignal):
    """How long rows of training are, on a log scale, and how much that varies."""

    key: ClassVar[str] = "surge"
    lines: ClassVar[Mapping[str, str]] = {
        "surge": "many channels deviate from their recent mean at once"
    }

    n_learned: ClassVar[int] = (
        3  # mean, deviation from the running mean, deviations that count as normal
    )

    single: float = 150.0  # channels whose evidence has weight one; it grows with their square
    most: float = 3.0  # the largest weight
    farthest: float = 10.0  # deviations beyond which a channel counts no more
    shortest: float = 0.1  # added to a row's length, in units of the root of the channels
    least: float = 0.1  # smallest deviation from the running mean, as in constant training rows
    edge: float = 1.0  # deviations above the running mean from which on a row counts

    @classmethod
    def fit(cls, training: Training) -> Fitted | None:
        """Learn from scaled training rows."""
        if training.normal.n_channels < FEWEST:
            return None
        config = training.config
        nothing = np.array([0.0, 1.0, cls.edge])
        signal = cls(training.normal, nothing, config.drift_half_life, config.warm)
        lengths = [_Lengths(signal).add(part) for part in training.scaled]
        mean = float(np.concatenate(lengths).mean())
        above = [signal._above(line, mean) for line in lengths]
        deviation = max(float(np.concatenate(above).std()), cls.least)
        return Fitted(replace(signal, learned=np.array([mean, deviation, cls.edge])))

    @property
    def weight(self) -> float:
        """How much the evidence counts."""
        return min((self.normal.n_channels / self.single) ** 2, self.most)

    def weighed(self, above: Array) -> Array:
        """The evidence of rows so far above their running mean, as it counts."""
        _, deviation, edge = self.learned
        return np.asarray(self.weight * np.maximum(above / deviation - edge, 0))

    def running_mean(self, lengths: Array, mean: float) -> PastAverage:
        """The baseline of a stream that begins with these: no higher than in training."""
        start = min(mean, float(lengths[: self.warm].mean()))
        return PastAverage(np.array([start]), self.half_life / FASTER)

    def _above(self, lengths: Array, mean: float) -> Array:
        running_mean = self.running_mean(lengths, mean).add(lengths[:, None])[:, 0]
        return np.asarray(lengths - running_mean)

    def updated(self, update: Update) -> Fitted:
        """Mean and deviation are those of old and new rows; accepted rows count as normal."""
        mean, deviation, edge = self.learned.tolist()
        lengths = [_Lengths(self).add(part) for part in update.scaled]
        above = [self._above(line, mean) for line in lengths]
        if above:
            share = update.weight
            varies = (1 - share) * deviation**2 + share * float(np.concatenate(above).var())
            deviation = max(float(np.sqrt(varies)), self.least)
            mean = (1 - share) * mean + share * float(np.concatenate(lengths).mean())
        for part in update.scaled_accepted:
            off = log_lengths(within(part, self.farthest), self.shortest)
            edge = max(edge, (float(off.max()) - mean) / deviation)
        return Fitted(replace(self, learned=np.array([mean, deviation, edge])))

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream; that of a row is final at once."""
        return SurgeEvidence(self)


class SurgeEvidence(Evidence):
    """How far rows are above their running mean, along a stream."""

    def __init__(self, surge: Surge) -> None:
        super().__init__(1)
        self._surge = surge
        self._lengths = _Lengths(surge)
        self._running_mean: PastAverage | None = None  # known from the first rows of the stream on

    def add(self, rows: Array, scaled: Array | None = None) -> Array:
        """The evidence of these rows."""
        if not len(rows):
            self.now = np.empty((1, 0))
            return self.now
        surge = self._surge
        lengths = self._lengths.add(surge.normal.scaled(rows) if scaled is None else scaled)
        if self._running_mean is None:
            self._running_mean = surge.running_mean(lengths, float(surge.learned[0]))
        above = lengths - self._running_mean.add(lengths[:, None])[:, 0]
        self.now = surge.weighed(above)[None]
        return self.now

    def end(self) -> Array:
        """Nothing is left; the baseline lasts beyond a cut."""
        return np.empty((1, 0))

    def state(self) -> dict[str, NDArray[Any]]:
        """Both averages."""
        kept = self._lengths.state()
        if self._running_mean is not None:
            kept = {**prefixed("running_mean", self._running_mean.state()), **kept}
        return kept

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        self._lengths.resume(state)
        if running_mean := under("running_mean", state):
            self._running_mean = PastAverage(np.zeros(1), self._surge.half_life / FASTER)
            self._running_mean.resume(running_mean)


class _Lengths:
    """The log length of rows along a stream, each channel from its past or from training.

    The nearer of the two counts: neither a level that stays nor the way back from a fault is a
    departure.
    """

    def __init__(self, surge: Surge) -> None:
        self._surge = surge
        self._middle: PastAverage | None = None

    def add(self, scaled: Array) -> Array:
        """The log lengths (n,) of the next scaled rows (n, n_channels)."""
        surge, found = self._surge, np.empty(len(scaled))
        for a in range(0, len(scaled), AT_ONCE):
            near = within(scaled[a : a + AT_ONCE], surge.farthest)
            if self._middle is None:
                start = near[: surge.warm].mean(axis=0)
                self._middle = PastAverage(start, surge.half_life)
            off = np.subtract(near, self._middle.add(near))
            np.minimum(np.abs(off, out=off), np.abs(near, out=near), out=off)
            found[a : a + AT_ONCE] = log_lengths(off, surge.shortest)
        return found

    def state(self) -> dict[str, NDArray[Any]]:
        """Where the stream has been."""
        return {} if self._middle is None else prefixed("middle", self._middle.state())

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        if middle := under("middle", state):
            self._middle = PastAverage(
                np.zeros(self._surge.normal.n_channels), self._surge.half_life
            )
            self._middle.resume(middle)


def log_lengths(rows: Array, shortest: float) -> Array:
    """log(‖x‖ / √d + shortest) of rows x (n, d)."""
    squares = (rows * rows).sum(axis=1) / rows.shape[1]
    return np.asarray(np.log(np.sqrt(squares) + shortest))
