"""Forecast: large one-step forecast residuals; causal.

Each channel is predicted from its own last six rows and those of the main common movements of all
channels, by ridge regression. What counts is how far a residual lies beyond what held-out training
rows showed in all but one of a thousand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.baseline_model import FOLDS, Normal, end_to_end, quantile, within
from vace_ad.signals.incremental import Update, merged_mean, merged_quantile
from vace_ad.signals.protocol import (
    AmplitudeSignal,
    Arrays,
    Evidence,
    Fitted,
    Layout,
    Training,
)
from vace_ad.signals.row_buffer import blocked_matmul
from vace_ad.signals.smoothing import SpreadEvidence

Array = NDArray[np.float64]

LAGS = 6  # rows before that a row is predicted from
COMMON = 8  # main movements of all channels, at most
SPREAD = 48  # rows over which evidence is averaged, half of them after a row
LEARNED = 50_000  # training rows at most
AT_ONCE = 256  # channels whose regressions are solved together
EXACT = 512  # channels at most whose movements are taken from all eigenvectors
_EQUAL = 1e-9  # of the largest: eigenvalues that differ by no more are equal


class Weights(NamedTuple):
    """A linear forecast."""

    directions: Array  # (n_channels, n_common), from scaled rows to common movements
    common: Array  # (LAGS · n_common, n_channels)
    own: Array  # (LAGS, n_channels)


@dataclass(frozen=True)
class Forecast(AmplitudeSignal):
    """The forecast, and how far training rows lay off it."""

    key: ClassVar[str] = "forecast"
    lines: ClassVar[Mapping[str, str]] = {"forecast": "large one-step forecast residuals"}

    normal: Normal
    weights: Weights
    edge: Array  # (n_channels,), residuals of all but a few training rows, in deviations
    mean_evidence: Array  # (1,), mean evidence of held-out training rows
    half_life: int  # rows
    quantile: float = 0.999  # of held-out residuals: the edge
    least: float = 1.0  # deviations of a channel that a row may always lie off
    ridge: float = 0.03  # added to the correlations' diagonal

    @classmethod
    def fit(cls, training: Training) -> Fitted:
        """Learn from scaled training rows; each block is predicted by what the others taught.

        Beyond LEARNED rows its blocks are those of the last rows only. So few weights of so many
        rows predict the rows that taught them no better than others.
        """
        normal = training.normal
        parts = [_near(normal, part) for part in training.scaled]
        few = _first(parts, LEARNED)
        folds = _Folds(few, _main_movements(np.concatenate(few)), cls.ridge)
        without = [folds.weights(without=i) for i in range(FOLDS)]
        off = np.abs(folds.held_out(without))
        edge = np.maximum(quantile(off.T.copy(), cls.quantile), cls.least)
        mean_evidence = _evidence(off, edge).mean(keepdims=True)
        half_life = training.config.drift_half_life
        signal = cls(normal, folds.weights(), edge, mean_evidence, half_life)
        return Fitted(signal, [replace(signal, weights=weights) for weights in without])

    def residuals(self, rows: Array) -> Array:
        """What a stretch of scaled rows (n, n_channels) shows beyond its forecast, from LAGS on."""
        common = blocked_matmul(rows, self.weights.directions)
        found = np.zeros_like(rows)
        n = len(rows) - LAGS
        if n > 0:
            predicted = blocked_matmul(_lagged(common), self.weights.common)
            if n == 1:  # the same order, in one call
                own = rows[LAGS - 1 :: -1] * self.weights.own
                predicted = np.add.accumulate(np.concatenate([predicted, own]))[-1:]
            else:
                for lag, weights in enumerate(self.weights.own):
                    predicted += rows[LAGS - 1 - lag : LAGS - 1 - lag + n] * weights
            found[LAGS:] = rows[LAGS:] - predicted
        return found

    def updated(self, update: Update) -> Fitted:
        """The regression stays, and has not seen the new rows; the edge is that of all."""
        off = [np.abs(self.residuals(_near(self.normal, part))) for part in update.scaled]
        every = np.concatenate([each[LAGS:] for each in off])
        edge = np.maximum(
            merged_quantile(self.edge, every, update.weight, self.quantile), self.least
        )
        for part in update.scaled_accepted:
            edge = np.maximum(edge, np.abs(self.residuals(_near(self.normal, part))).max(axis=0))
        new = _evidence(every, edge).mean(keepdims=True)
        mean_evidence = merged_mean(self.mean_evidence, new, update.weight)
        return Fitted(replace(self, edge=edge, mean_evidence=mean_evidence))

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream."""
        return ForecastEvidence(self, live)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned."""
        return {**self.weights._asdict(), "edge": self.edge, "mean_evidence": self.mean_evidence}

    @classmethod
    def layout(cls, config: VACEConfig, n_channels: int, constants: Mapping[str, Any]) -> Layout:
        """What `arrays` gives."""
        k = min(COMMON, n_channels)
        return {
            "directions": ("F64", (n_channels, k)),
            "common": ("F64", (LAGS * k, n_channels)),
            "own": ("F64", (LAGS, n_channels)),
            "edge": ("F64", (n_channels,)),
            "mean_evidence": ("F64", (1,)),
        }

    @classmethod
    def restored(
        cls, arrays: Arrays, normal: Normal, config: VACEConfig, constants: Mapping[str, Any]
    ) -> Self:
        """The reverse of `arrays`."""
        weights = Weights(*(arrays[name] for name in Weights._fields))
        learned = (arrays["edge"], arrays["mean_evidence"], config.drift_half_life)
        return cls(normal, weights, *learned, **constants)


class ForecastEvidence(SpreadEvidence):
    """How far rows lie off their forecast, along a stream."""

    def __init__(self, forecast: Forecast, live: bool) -> None:
        self._forecast = forecast
        super().__init__(forecast.normal, forecast.mean_evidence, forecast.half_life, SPREAD, live)

    def _begin(self) -> None:
        super()._begin()
        self._past = np.empty((0, self._forecast.normal.n_channels))  # the last rows, LAGS at most

    def _found(self, scaled: Array) -> Array:
        forecast = self._forecast
        near = _near(forecast.normal, scaled)
        known = np.concatenate([self._past, near])
        off = np.abs(forecast.residuals(known)[len(self._past) :])
        self._past = known[-LAGS:]
        return _evidence(off, forecast.edge)

    def state(self) -> dict[str, NDArray[Any]]:
        """The running mean, the last rows and their evidence."""
        return {**super().state(), "past": self._past}

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        super().resume(state)
        self._past = state["past"]


class _Folds:
    """The sums that a ridge regression is solved from, block by block of training rows."""

    def __init__(self, parts: Sequence[Array], directions: Array, ridge: float) -> None:
        self._directions, self._ridge = directions, ridge
        self._common = end_to_end([_lagged(part @ directions) for part in parts])
        past = [
            sliding_window_view(part[:-1], LAGS, axis=0).transpose(2, 0, 1)[::-1] for part in parts
        ]
        self._own = end_to_end(past, axis=1)  # (LAGS, n, n_channels)
        self._rows = end_to_end([part[LAGS:] for part in parts])  # (n, n_channels)
        sizes = np.cumsum([0, *map(len, np.array_split(self._rows, FOLDS))]).tolist()
        self._blocks = [slice(a, b) for a, b in pairwise(sizes)]
        self._sums = [self._sums_of(block) for block in self._blocks]

    def _sums_of(self, block: slice) -> list[Array]:
        x, own, y = self._common[block], self._own[:, block], self._rows[block]
        if y.shape[1] == 1:  # the order of the sums of one channel depends on how it lies in memory
            own = own.swapaxes(0, 1).copy().swapaxes(0, 1)
        return [
            x.T @ x,  # (k, k)
            x.T @ y,  # (k, n_channels)
            np.stack([x.T @ each for each in own]),  # (LAGS, k, n_channels)
            np.einsum("anc,bnc->cab", own, own, optimize=True),  # (n_channels, LAGS, LAGS)
            np.einsum("anc,nc->ca", own, y),  # (n_channels, LAGS)
            np.array([float(len(y))]),
        ]

    def weights(self, without: int | None = None) -> Weights:
        """The regression of all blocks, or of all but one."""
        used = [s for i, s in enumerate(self._sums) if i != without]
        xx, xy, xo, oo, oy, n = (np.sum(each, axis=0) for each in zip(*used, strict=True))
        k, d = xy.shape
        solved = np.empty((k + LAGS, d))
        for c in np.array_split(np.arange(d), -(-d // AT_ONCE)):
            system = np.empty((len(c), k + LAGS, k + LAGS))
            across = xo[:, :, c].transpose(2, 0, 1)  # (n_channels, LAGS, k)
            system[:, :k, :k], system[:, :k, k:] = xx, across.transpose(0, 2, 1)
            system[:, k:, :k], system[:, k:, k:] = across, oo[c]
            system = system / n[0] + self._ridge * np.eye(k + LAGS)
            right = np.concatenate([xy[:, c], oy[c].T]).T / n[0]
            solved[:, c] = np.linalg.solve(system, right[:, :, None])[:, :, 0].T
        return Weights(self._directions, solved[:k].copy(), solved[k:].copy())

    def held_out(self, without: Sequence[Weights]) -> Array:
        """The residuals of every block by what the others taught, (n, n_channels)."""
        found = np.empty_like(self._rows)
        for block, weights in zip(self._blocks, without, strict=True):
            predicted = self._common[block] @ weights.common
            for own, factors in zip(self._own[:, block], weights.own, strict=True):
                predicted += own * factors
            found[block] = self._rows[block] - predicted
        return found


def _near(normal: Normal, scaled: Array) -> Array:
    return within(scaled, normal.farthest_related)


def _first(parts: Sequence[Array], most: int) -> list[Array]:
    """Parts that hold a forecast, the last `most` rows of them."""
    kept: list[Array] = []
    left = most
    for part in reversed(parts):
        if left > LAGS and len(part) > LAGS:
            kept.insert(0, part[-left:])
            left -= len(kept[0])
    return kept


def _main_movements(rows: Array) -> Array:
    """The directions in which rows (n, n_channels) move most, (n_channels, COMMON)."""
    d = rows.shape[1]
    if d <= EXACT:
        return _largest(rows.T @ rows)
    # The cost of all eigenvectors grows with the cube of the channels: a few, by iteration.
    basis = np.random.default_rng(0).normal(size=(d, 3 * COMMON))
    for _ in range(10):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    moved = rows @ basis
    return np.asarray(basis @ _largest(moved.T @ moved))


def _largest(matrix: Array) -> Array:
    """The eigenvectors of the COMMON largest eigenvalues.

    Of equal eigenvalues, some in and some out, each processor picks its own: such are zeros.
    """
    values, vectors = np.linalg.eigh(matrix)
    chosen = vectors[:, -COMMON:].copy()
    if len(values) > COMMON:
        chosen[:, values[-COMMON:] - values[-COMMON - 1] <= _EQUAL * values[-1]] = 0
    return chosen


def _lagged(rows: Array) -> Array:
    """The LAGS rows before each row from LAGS on, the latest first, (n − LAGS, LAGS · k)."""
    n = len(rows)
    if n == LAGS + 1:  # a live row
        return rows[LAGS - 1 :: -1].reshape(1, -1)
    return np.concatenate([rows[LAGS - 1 - i : n - 1 - i] for i in range(LAGS)], axis=1)


def _evidence(off: Array, edge: Array) -> Array:
    """Excess beyond the edge, summed over channels, both on a log scale, (n,)."""
    return np.asarray(np.log1p(np.log1p(np.maximum(off / edge - 1, 0)).sum(axis=1)))
