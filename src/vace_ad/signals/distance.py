"""Distance: rows far from the recent mean of the series, whichever channels it is.

The length of a row's departure from its past average, over all channels, in units of the longest
that training rows have from their mean. It needs no windows, so a short training teaches it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.baseline_model import within
from vace_ad.signals.incremental import Update, merged_quantile
from vace_ad.signals.protocol import (
    Arrays,
    Evidence,
    Fitted,
    NumbersSignal,
    Training,
    prefixed,
    under,
)
from vace_ad.signals.smoothing import PastAverage, SpreadEvidence

Array = NDArray[np.float64]

SPREAD = 96  # rows over which evidence is averaged, half of them after a row


@dataclass(frozen=True)
class Distance(NumbersSignal):
    """How far training rows lie from their mean."""

    key: ClassVar[str] = "distance"
    lines: ClassVar[Mapping[str, str]] = {"distance": "rows far from their recent mean"}

    n_learned: ClassVar[int] = 2  # the unit, and the mean evidence of training rows

    weight: float = 0.5
    farthest: float = 5.0  # deviations beyond which a channel counts no more
    quantile: float = 0.999  # of training rows: the unit

    @classmethod
    def fit(cls, training: Training) -> Fitted:
        """Learn from scaled training rows."""
        lengths = [_length(np.clip(x, -cls.farthest, cls.farthest)) for x in training.scaled]
        every = np.concatenate(lengths)
        unit = max(float(np.quantile(every, cls.quantile)), 1e-9)
        mean = float(np.log1p(every / unit).mean())
        config = training.config
        learned = np.array([unit, mean])
        return Fitted(cls(training.normal, learned, config.drift_half_life, config.warm))

    def updated(self, update: Update) -> Fitted:
        """The unit is that of old and new rows."""
        lengths = [_length(np.clip(x, -self.farthest, self.farthest)) for x in update.scaled]
        every = np.concatenate(lengths)
        unit, mean = self.learned.tolist()
        unit = merged_quantile(np.array([unit]), every[:, None], update.weight, self.quantile)[0]
        for x in update.scaled_accepted:
            unit = max(unit, _length(np.clip(x, -self.farthest, self.farthest)).max())
        mean = (1 - update.weight) * mean + update.weight * np.log1p(every / unit).mean()
        return Fitted(replace(self, learned=np.array([unit, mean])))

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream."""
        return DistanceEvidence(self, live)


class DistanceEvidence(SpreadEvidence):
    """How far rows lie from their past average, along a stream."""

    def __init__(self, distance: Distance, live: bool) -> None:
        self._distance = distance
        self._middle: PastAverage | None = None  # known from the first rows of the stream on
        super().__init__(distance.normal, distance.learned[1:], distance.half_life, SPREAD, live)

    def _found(self, scaled: Array) -> Array:
        distance = self._distance
        near = within(scaled, distance.farthest)
        if self._middle is None:
            self._middle = PastAverage(near[: distance.warm].mean(axis=0), distance.half_life)
        found = _length(near - self._middle.add(near)) / distance.learned[0]
        return np.asarray(np.log1p(found))

    def add(self, rows: Array, scaled: Array | None = None) -> Array:
        """The evidence that is complete after these rows, as it counts."""
        done = self._distance.weight * super().add(rows, scaled)
        self.now = self._distance.weight * self.now
        return np.asarray(done)

    def end(self) -> Array:
        """The evidence that is left of the stretch, as it counts."""
        return np.asarray(self._distance.weight * super().end())

    def state(self) -> dict[str, NDArray[Any]]:
        """Averages and the last rows' evidence."""
        middle = {} if self._middle is None else prefixed("middle", self._middle.state())
        return {**super().state(), **middle}

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        super().resume(state)
        if middle := under("middle", state):
            self._middle = PastAverage(
                np.zeros(self._distance.normal.n_channels), self._distance.half_life
            )
            self._middle.resume(middle)


def _length(rows: Array) -> Array:
    return np.asarray(np.sqrt((rows * rows).sum(axis=1)))
