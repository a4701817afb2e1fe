"""Smoothing of evidence: by the average of its past, and over neighbouring rows."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.protocol import Arrays, Evidence, prefixed, under
from vace_ad.signals.row_buffer import WindowMeans

Array = NDArray[np.float64]
_LONGEST = 4096  # steps between two fresh starts of the sum


class PastAverage:
    """The average before each step; a step's own value never enters its average.

    a_t = keep · a_{t−1} + (1 − keep) · x_{t−1} is worked out for many steps at once, as
    keep^t · (a_0 + Σ (1 − keep) · keep^−(s+1) · x_s), with a fresh start before the powers grow
    large. The sum runs step by step, so the bits do not depend on how steps are cut into calls.
    """

    def __init__(self, start: Array, half_life: float) -> None:
        """`start` (n_features,) is the average before the first step; half_life counts steps."""
        self._up, self._down = _powers(half_life)  # (length, 1), (length + 1, 1)
        self._start = start  # of the present run of steps
        self._sum = np.zeros_like(start)
        self._k = 0  # steps of it

    @property
    def value(self) -> Array:
        """The average now, before the next step."""
        return np.asarray(self._down[self._k] * (self._start + self._sum))

    def add(self, values: Array) -> Array:
        """The average before each of these steps, (n, n_features)."""
        if len(values) == 1 and self._k + 1 < len(self._up):  # a live row: no need of a sum
            before = self._down[self._k] * (self._start + self._sum)
            self._sum = self._sum + self._up[self._k] * values[0]
            self._k += 1
            return np.asarray(before[None])
        parts = []
        at = 0
        while at < len(values):
            m = min(len(values) - at, len(self._up) - self._k)
            new = self._up[self._k : self._k + m] * values[at : at + m]
            sums = np.add.accumulate(np.concatenate([self._sum[None], new]))
            parts.append(self._down[self._k : self._k + m] * (self._start + sums[:-1]))
            self._sum, self._k, at = sums[-1], self._k + m, at + m
            if self._k == len(self._up):
                self._start, self._sum, self._k = self.value, np.zeros_like(self._sum), 0
        return parts[0] if len(parts) == 1 else np.concatenate([values[:0], *parts])

    def state(self) -> dict[str, NDArray[Any]]:
        """The present run."""
        return {"start": self._start, "sum": self._sum, "k": np.array([self._k])}

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        start, total, k = state["start"], state["sum"], int(state["k"][0])
        if start.shape != self._start.shape or total.shape != start.shape:
            raise ValueError(f"an average has the shapes {start.shape} and {total.shape}")
        if not 0 <= k < len(self._up):
            raise ValueError(f"an average of {k} steps, and it begins anew after {len(self._up)}")
        self._start, self._sum, self._k = start, total, k


@lru_cache(maxsize=64)
def _powers(half_life: float) -> tuple[Array, Array]:
    """The weights of steps; thousands of streams of one model share them."""
    keep = 0.5 ** (1 / half_life)
    length = int(np.clip(4 * half_life, 1, _LONGEST))
    up = (1 - keep) * keep ** -np.arange(1.0, length + 1)[:, None]  # (length, 1)
    down = keep ** np.arange(0.0, length + 1)[:, None]  # (length + 1, 1)
    up.setflags(write=False)
    down.setflags(write=False)
    return up, down


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
