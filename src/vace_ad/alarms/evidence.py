"""Evidence in one unit: nats, how surprising a cell is by held-out rows.

Residuals are judged against their own recent mean and spread (`Baseline`), then turned into −log
of the share of held-out rows that lie as far off (`Surprise`): counted up to the last two percent,
by a generalised Pareto law beyond, and never more than a normal distribution would give. Nats are
kept as whole numbers of 1/1024, so sums of them are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.constants import (
    BASELINE_BLOCK,
    BASELINE_CLIP,
    BASELINE_HALF_LIFE,
    MOST_NATS,
    TAIL_SHARE,
    WARM_UP,
)
from vace_ad.signals.baseline_model import within

Array = NDArray[np.float64]
Nats = NDArray[np.int64]  # in units of 1 / UNIT

UNIT = 1024
FINE_STEP, N_FINE = 0.05, 120  # of the distances tabulated, the first ones evenly
GRID = np.concatenate([FINE_STEP * np.arange(N_FINE), np.geomspace(6, 1e4, 80)])
LEAST_EXCESSES = 5  # beyond the quantile that a Pareto law can be fitted to
_PRIOR_SHAPE, _PRIOR_WEIGHT = 0.1, 20  # of the Pareto law


def whole(nats: NDArray[np.floating] | float) -> Nats:
    """Nats as whole numbers of 1 / UNIT."""
    return np.asarray(np.rint(np.asarray(nats) * UNIT), dtype=np.int64)


class Baseline:
    """Residuals relative to their recent mean and spread, which blocks of rows move.

    One row moves it by `BASELINE_CLIP` spreads at most, and the spread never counts as less than
    the training's. The rows of the warm-up move it as in a plain mean.
    """

    def __init__(self, width: int) -> None:
        self.mean = np.zeros(width)
        self.variance = np.ones(width)
        self._block = np.empty((0, width))  # residuals of the block that is not full yet
        self._full = np.empty((0, width))  # those of the last full one
        self._weight = 1 - 0.5 ** (BASELINE_BLOCK / BASELINE_HALF_LIFE)
        self._n_blocks = 0

    @property
    def spread(self) -> Array:
        """The recent standard deviation, at least 1, (width,)."""
        return np.asarray(np.sqrt(np.maximum(self.variance, 1.0)))

    def add(self, residuals: Array) -> Array:
        """The next rows (n, width) in recent deviations from their recent mean."""
        found = np.empty_like(residuals)
        for part in self._parts(residuals):
            np.divide(residuals[part] - self.mean, self.spread, out=found[part])
        return found

    def follow(self, residuals: Array) -> tuple[Array, Array]:
        """The recent mean and spread that each of the next rows is judged by, (n, width) each."""
        means, spreads = np.empty_like(residuals), np.empty_like(residuals)
        for part in self._parts(residuals):
            means[part], spreads[part] = self.mean, self.spread
        return means, spreads

    def _parts(self, residuals: Array) -> Iterator[slice]:
        """Rows that one baseline judges, which moves when it is asked for the next ones."""
        at = 0
        while at < len(residuals):
            part = slice(at, at + BASELINE_BLOCK - len(self._block))
            yield part
            some = residuals[part]
            self._block = np.concatenate([self._block, some]) if len(self._block) else some
            if len(self._block) == BASELINE_BLOCK:
                self._move()
            at += len(some)

    def _move(self) -> None:
        self._n_blocks += 1
        young = self._n_blocks * BASELINE_BLOCK <= WARM_UP
        weight = 1 / (WARM_UP / BASELINE_BLOCK + self._n_blocks) if young else self._weight
        most = BASELINE_CLIP * self.spread
        steps = within(self._block - self.mean, most)
        self.mean = self.mean + weight * (np.add.reduce(steps) / BASELINE_BLOCK)
        squares = np.add.reduce(steps * steps) / BASELINE_BLOCK
        self.variance = self.variance + weight * (squares - self.variance)
        self._block, self._full = self._block[:0], self._block

    def adopt(self, columns: NDArray[np.intp]) -> None:
        """Take the level and the spread of the last rows as the new baseline of some columns."""
        rows = np.concatenate([self._full, self._block])[:, columns]
        self.mean, self.variance = self.mean.copy(), self.variance.copy()
        self.mean[columns], self.variance[columns] = rows.mean(axis=0), rows.var(axis=0)

    def follow_level(self) -> None:
        """Take the level of the last rows where it is off by two standard errors; spreads stay."""
        rows = np.concatenate([self._full, self._block])
        if len(rows):
            level, error = rows.mean(axis=0), self.spread / math.sqrt(len(rows))
            self.mean = np.where(np.abs(level - self.mean) > 2 * error, level, self.mean)

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        return {
            "mean": self.mean,
            "variance": self.variance,
            "block": np.array(self._block),
            "full": np.array(self._full),
            "n": np.array([self._n_blocks]),
        }

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        shapes = {state[name].shape[-1:] for name in ("mean", "variance", "block", "full")}
        if shapes != {self.mean.shape}:
            raise ValueError("the baseline has another number of channels")
        self.mean, self.variance = state["mean"].copy(), state["variance"].copy()
        self._block, self._full = state["block"].copy(), state["full"].copy()
        self._n_blocks = int(state["n"][0])


def judge_side_by_side(stretches: Sequence[Array]) -> None:
    """Put each of these stretches (n, width), in place, in deviations from a baseline of its own.

    They are about as long as each other; a baseline of all columns at once takes less time.
    """
    block = np.zeros((64 * BASELINE_BLOCK, len(stretches), stretches[0].shape[1]))
    wide = block.reshape(len(block), -1)
    baseline = Baseline(wide.shape[1])
    for at in range(0, max(map(len, stretches)), len(block)):
        parts = [each[at : at + len(block)] for each in stretches]
        for i, part in enumerate(parts):
            block[: len(part), i] = part
        found = baseline.add(wide).reshape(block.shape)
        for i, part in enumerate(parts):
            part[:] = found[: len(part), i]


@dataclass(frozen=True)
class Surprise:
    """Nats of distances from 0, by held-out rows, tabulated for each column."""

    table: Nats  # (len(GRID), n_columns)

    @classmethod
    def fit(cls, held_out: Sequence[Array]) -> Self:
        """Learn from distances (n, n_columns) of held-out rows, in recent deviations."""
        columns: list[Array] = []
        for at in range(0, held_out[0].shape[1], 8):  # so many lie side by side in memory
            some = np.concatenate([part[:, at : at + 8] for part in held_out])
            columns += [_nats(each) for each in np.sort(np.abs(some.T, order="C"), axis=1)]
        return cls(whole(np.minimum(np.stack(columns, axis=1), MOST_NATS)))

    def of(self, distances: Array) -> Nats:
        """The nats of rows (n, n_columns)."""
        far = np.minimum(np.abs(distances), GRID[-1])
        part = far / FINE_STEP
        low = part.astype(np.intp)
        part -= low
        if (beyond := low >= N_FINE).any():
            some = far[beyond]
            place = np.minimum(np.searchsorted(GRID, some, side="right") - 1, len(GRID) - 2)
            part[beyond], low[beyond] = (some - GRID[place]) / _STEPS[place], place
        low *= self.table.shape[1]
        low += np.arange(self.table.shape[1])
        part *= self._rises.take(low)
        return np.asarray(self.table.take(low) + np.rint(part), np.int64)

    @cached_property
    def _rises(self) -> Array:
        """From each point of the grid to the next, column by column."""
        return np.diff(self.table, axis=0).astype(np.float64).ravel()


_STEPS = np.diff(GRID)
_NORMAL = np.array([-math.log(max(math.erfc(x / math.sqrt(2)), 1e-300)) for x in GRID])


def _nats(rows: Array) -> Array:
    """Nats at each point of the grid, from sorted distances of one column."""
    n = len(rows)
    beyond = n - np.searchsorted(rows, GRID, side="left")
    counted = np.minimum(-np.log((beyond + 0.5) / (n + 1)), -math.log(TAIL_SHARE))
    level = rows[math.ceil((1 - TAIL_SHARE) * n) - 1] ** 2
    excesses = rows[math.ceil((1 - TAIL_SHARE) * n) :] ** 2 - level
    excesses = excesses[excesses > 0]
    if len(excesses) < LEAST_EXCESSES:
        scale, shape = max(float(excesses.mean()) if len(excesses) else 0.0, 2.0), 0.0
    else:
        scale, shape = _pareto(excesses)
    past = np.maximum(GRID**2 - level, 0.0) / scale
    tail = np.log1p(shape * past) / shape if shape > 1e-6 else past
    found = np.where(level < GRID**2, tail - math.log(TAIL_SHARE), counted)
    return np.asarray(np.minimum(found, _NORMAL))


def _pareto(excesses: Array) -> tuple[float, float]:
    """Scale and shape of a generalised Pareto law by moments, the shape drawn to a prior."""
    mean, variance = float(excesses.mean()), float(excesses.var()) + 1e-12
    weight = len(excesses) / (len(excesses) + _PRIOR_WEIGHT)
    shape = weight * 0.5 * (1 - mean * mean / variance) + (1 - weight) * _PRIOR_SHAPE
    shape = max(shape, 0.0)  # below 0.5, as moments give it
    return max(mean * (1 - shape), 1e-9), shape
