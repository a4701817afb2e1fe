"""The baseline of a signal: an exponential average of the past alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.row_buffer import Arrays

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
