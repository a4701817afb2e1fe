"""A linear vector autoregression of reduced rank in closed form, as arXiv 2602.00672 proposes.

Each standardised row is predicted from the `lags` rows before it by least squares with a small
ridge; the coefficients are then projected on the leading principal components of what they
predict (reduced-rank regression). A row's score is the squared length of its residual. The number
of lags, the ridge and the rule for the rank are chosen here: the paper's text was not at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import NotFittedError, TooShortError
from vace_study.baselines.charts import training_scale
from vace_study.baselines.contract import Method
from vace_study.baselines.limits import LimitAlarms

Array = NDArray[np.float64]

_BATCH = 20_000  # rows that are predicted at a time


@dataclass
class ReducedRankVAR(LimitAlarms):
    """Squared residual of a one-step linear forecast of all channels together."""

    lags: int = 16  # rows
    ridge: float = 1e-3  # times the number of training rows
    explained: float = 0.9  # share of the predicted variance that the kept directions reach

    def fit(self, table: Array) -> ReducedRankVAR:
        """Coefficients (lags · C, C) of the training rows."""
        self._check(table, 2)
        self.scale_ = training_scale(table)
        z = self.scale_(table)
        size, channels = self.lags * z.shape[1], z.shape[1]
        products, moments = np.zeros((size, size)), np.zeros((size, channels))
        for past, now in self._pairs(z):
            products, moments = products + past.T @ past, moments + past.T @ now
        ridge = self.ridge * len(z) * np.eye(size)
        full = np.linalg.solve(products + ridge, moments)  # (lags · C, C)
        spread = full.T @ products @ full  # (C, C), of what is predicted
        values, vectors = np.linalg.eigh(spread)
        values, vectors = values[::-1], vectors[:, ::-1]  # falling
        shares = np.cumsum(values) / max(float(values.sum()), np.finfo(np.float64).tiny)
        rank = min(int(np.searchsorted(shares, self.explained)) + 1, len(values))
        kept = vectors[:, :rank]  # (C, rank)
        self.rank_ = rank
        self.coefficients_ = full @ kept @ kept.T
        self.training_scores_ = self.score(table)
        return self

    def score(self, table: Array) -> Array:
        """Squared residuals; the first rows, which have too few before them, get the first one."""
        return np.asarray(self.contributions(table).sum(axis=1))

    def contributions(self, table: Array) -> Array:
        """The squared residual of each channel."""
        if not hasattr(self, "coefficients_"):
            raise NotFittedError("the model has no training rows yet; call fit first")
        self._check(table, 1)
        found = [
            (now - past @ self.coefficients_) ** 2 for past, now in self._pairs(self.scale_(table))
        ]
        return np.pad(np.concatenate(found), ((self.lags, 0), (0, 0)), mode="edge")

    def _check(self, table: Array, more: int) -> None:
        if len(table) < self.lags + more:
            raise TooShortError(
                f"{len(table)} rows came; with {self.lags} lags at least {self.lags + more} are "
                "needed: pass a longer table"
            )

    def _pairs(self, z: Array) -> Iterator[tuple[Array, Array]]:
        """The rows before, flattened channel by channel, and the row itself, batch by batch."""
        view = np.lib.stride_tricks.sliding_window_view(z, self.lags, axis=0)[:-1]
        now = z[self.lags :]
        for i in range(0, len(view), _BATCH):
            part = view[i : i + _BATCH]
            yield part.reshape(len(part), -1), now[i : i + _BATCH]


METHODS = (
    Method(
        "var-reduced-rank",
        lambda seed: ReducedRankVAR(),
        {"model": "var", **asdict(ReducedRankVAR())},
        False,
        "Linear",
    ),
)
