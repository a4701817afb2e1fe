"""Smoothing of row-wise evidence over neighbouring rows, shared by several signals."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.protocol import Arrays, Evidence, prefixed, under
from vace_ad.signals.row_buffer import WindowMeans
from vace_ad.signals.running_mean import PastAverage

Array = NDArray[np.float64]


class SpreadEvidence(Evidence):
    """One line: a row's evidence, divided by 1 + its running mean, averaged around it."""

    def __init__(
        self, normal: Normal, mean_evidence: Array, half_life: float, spread: int, live: bool
    ) -> None:
        super().__init__(1)
        self._normal = normal
        self._spread, self._live = spread, live
        self._mean_evidence = PastAverage(mean_evidence, half_life)
        self._begin()

    def _begin(self) -> None:
        self._n = 0  # rows of the stretch
        self._means = WindowMeans(self._spread, 1, 1)
        self._late = self._spread // 2 - 1  # rows that a mean has to wait for

    @abstractmethod
    def _found(self, scaled: Array) -> Array:
        """The evidence (n,) of each of the stretch's next rows (n, n_channels), scaled."""

    def add(self, rows: Array, scaled: Array | None = None) -> Array:
        """The evidence that is complete after these rows."""
        if not len(rows):
            self.now = np.empty((1, 0))
            return self.now
        found = self._found(self._normal.scaled(rows) if scaled is None else scaled)
        found = found[:, None]  # (n, 1)
        self._n += len(rows)
        evidence = (found / (1 + self._mean_evidence.add(found))).T  # (1, n)
        done = self._waited(self._means.add(evidence))
        if self._live:
            self.now = self._provisional(len(rows))
        return done

    def _provisional(self, n: int) -> Array:
        """Means over the rows up to each of the last n, of as many as a final mean has before it.

        At the stretch's start there are fewer.
        """
        half = self._spread // 2 + 1
        sums = self._means.latest_sums(n, half)
        if self._n - n >= half - 1:
            return np.asarray(sums / half)
        return np.asarray(sums / np.minimum(np.arange(self._n - n, self._n) + 1, half))

    def _waited(self, rows: Array) -> Array:
        """The means of rows in the middle of their windows instead of at the end."""
        skipped = min(self._late, rows.shape[1])
        self._late -= skipped
        return rows[:, skipped:]

    def end(self) -> Array:
        """The evidence that is left of the stretch."""
        given = max(0, self._n - (self._spread // 2 - 1))
        rest = self._waited(self._means.finish(self._n + self._spread - 1))
        rest = rest[:, : self._n - given]
        self._begin()
        return rest

    def state(self) -> dict[str, NDArray[Any]]:
        """The running mean, and the last rows' evidence."""
        return {
            "n": np.array([self._n, self._late]),
            **prefixed("mean_evidence", self._mean_evidence.state()),
            **prefixed("means", self._means.state()),
        }

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        self._n, self._late = (int(n) for n in state["n"])
        self._mean_evidence.resume(under("mean_evidence", state))
        self._means.resume(under("means", state))
