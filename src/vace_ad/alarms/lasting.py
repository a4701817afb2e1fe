"""Weak evidence that lasts: scores that stay above all that their series has shown before.

A peak may be chance where a whole stretch is not. So the mean of the latest scores is held against
the highest score that the same stream had before them, and against the limit that the finished
detector's scores of its training rows would set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.rows import RowBuffer

Array = NDArray[np.float64]

STRETCH, GAP = 1.5, 2.5  # in rows that share evidence: what is averaged; how far back the past ends
LEAST = 256  # scores of the past from which on it can tell
ABOVE_PAST, ABOVE_SEEN = 1.2, 1.5  # factors by which the mean must lie above them


class Lasting:
    """How far the latest stretch of a stream lies above its past; asked every few rows."""

    def __init__(self, spacing: int, seen: float) -> None:
        self._stretch, self._gap = round(STRETCH * spacing), round(GAP * spacing)
        self._seen = seen  # limit of scores by the finished detector's own training rows
        self._late = RowBuffer(1)  # the last scores
        self._highest, self._n = 0.0, 0  # of the past: its highest score, and how many there are
        self._quiet = 0  # rows since the last one that was an alarm by itself

    def add(self, scores: Array, limit: float) -> None:
        """The next scores; those in alarm are known, and count as their limit."""
        self._late.add(np.minimum(scores, limit)[:, None])
        loud = np.flatnonzero(scores > limit)
        self._quiet = len(scores) - 1 - int(loud[-1]) if len(loud) else self._quiet + len(scores)

    def ratio(self) -> float:
        """The mean of the latest scores over what it must lie above; 0 while that is unknown."""
        old = self._late.first(max(0, len(self._late) - self._gap))[:, 0]
        self._late.keep(self._gap)
        old = old[np.isfinite(old)]
        self._highest, self._n = float(np.max(old, initial=self._highest)), self._n + len(old)
        latest = self._late.last(self._stretch)[:, 0]
        latest = latest[np.isfinite(latest)]
        if self._n < LEAST or 2 * len(latest) < self._stretch or self._quiet < self._gap:
            return 0.0  # soon after an alarm, what lasts is its echo
        must = max(ABOVE_PAST * self._highest, ABOVE_SEEN * self._seen)
        return float(latest.mean()) / must if must > 0 else 0.0

    def state(self) -> dict[str, NDArray[Any]]:
        """The last scores, and the highest of the others."""
        numbers = [self._highest, float(self._n), float(self._quiet)]
        return {"late": self._late.all[:, 0].copy(), "highest": np.array(numbers)}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        self._late.refill(state["late"][:, None].copy())
        self._highest = float(state["highest"][0])
        self._n, self._quiet = (int(number) for number in state["highest"][1:])
