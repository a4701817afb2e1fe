"""Scores on the scale of their own recent past: middle and spread of the last thousand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.rows import RowBuffer

Array = NDArray[np.float64]

WINDOW, PRIOR = 1_000, 1_000  # scores of the recent past; how many of them training counts as
LEAST = 64  # scores from which on the past counts
EVERY = 32  # rows between two looks at the recent past
FLOOR_SHARE = 0.25  # of training's spread that is added to every spread


class Recent:
    """Middle and spread of the recent past, blended with those that training gives."""

    def __init__(self, middle: float, spread: float, spacing: int) -> None:
        self._first, self._spacing = (middle, spread), spacing
        self._past = RowBuffer(1)  # the last WINDOW + spacing scores
        self.middle, self.spread = middle, spread  # from there to the highest tenth

    @property
    def unit(self) -> float:
        """The spread with its floor: what scores are measured in."""
        return self.spread + FLOOR_SHARE * self._first[1]

    def look(self) -> None:
        """Middle and spread anew; rows that share evidence with the next one do not count."""
        known = self._past.first(max(0, len(self._past) - self._spacing))[:, 0]
        known = known[np.isfinite(known)]
        if len(known) < LEAST:
            return
        middle, high = np.quantile(known, [0.5, 0.9])
        own = len(known) / (len(known) + PRIOR)
        self.middle = own * float(middle) + (1 - own) * self._first[0]
        self.spread = own * float(high - middle) + (1 - own) * self._first[1]

    def add(self, scores: Array) -> None:
        """The next scores are past."""
        self._past.add(scores[:, None])
        self._past.keep(WINDOW + self._spacing)

    @property
    def past(self) -> Array:
        """The last scores."""
        return self._past.all[:, 0].copy()

    @past.setter
    def past(self, scores: Array) -> None:
        self._past.refill(scores[:, None].copy())


def standardised(scores: Array, middle: float, spread: float, spacing: int) -> Array:
    """Scores (n,) as a stream that starts with this middle and spread would measure them."""
    recent, parts = Recent(middle, spread, spacing), [np.empty(0)]
    for at in range(0, len(scores), EVERY):
        part = scores[at : at + EVERY]
        recent.look()
        parts.append((part - recent.middle) / recent.unit)
        recent.add(part)
    return np.concatenate(parts)
