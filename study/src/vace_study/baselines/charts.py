"""Statistical process control: what every anomaly detector should have to beat.

By channel, on rows standardised by the training rows, the largest channel counts: Shewhart's chart
of single values, Roberts' EWMA and Page's two-sided CUSUM. For all channels together, with a PCA
of the training rows: Hotelling's T² within the kept components, and Q, the squared distance from
them (Jackson and Mudholkar, 1979). Each score is the charted statistic itself; limits would only
choose a threshold. Nothing is restarted after a signal, as nobody repairs a recorded plant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError, NotFittedError, TooShortError, needs
from vace_study.baselines.contract import Detector, Method
from vace_study.baselines.limits import LimitAlarms
from vace_study.baselines.networks.scaling import Scale

Array = NDArray[np.float64]
Statistic = Literal["t2", "q", "both"]


@dataclass
class Shewhart(LimitAlarms):
    """The largest deviation of a row from the training mean, in standard deviations."""

    def fit(self, table: Array) -> Shewhart:
        """Mean and standard deviation of each channel."""
        self.scale_ = training_scale(table)
        self.training_scores_ = self.score(table)
        return self

    def score(self, table: Array) -> Array:
        """The charted statistic of the worst channel, row by row."""
        return np.asarray(self.contributions(table).max(axis=1))

    def contributions(self, table: Array) -> Array:
        """The charted statistic of each channel, row by row."""
        if not hasattr(self, "scale_"):
            raise NotFittedError("the chart has no training rows yet; call fit first")
        return self._statistic(self.scale_(table))

    def _statistic(self, z: Array) -> Array:
        """By row and channel, from standardised rows. (n, C) → (n, C)."""
        return np.abs(z)


@dataclass
class EWMA(Shewhart):
    """An exponentially weighted mean of each channel, in its own standard deviations."""

    weight: float = 0.2  # of the newest row; 0.05 to 0.25 is usual (Montgomery)

    def _statistic(self, z: Array) -> Array:
        with needs("scipy", "paper", "the EWMA chart"):
            from scipy.signal import lfilter

        kept = 1 - self.weight
        means = lfilter([self.weight], [1.0, -kept], z, axis=0)  # from the training mean on
        rows = np.arange(1, len(z) + 1)[:, None]
        variance = self.weight / (2 - self.weight) * (1 - kept ** (2.0 * rows))  # (n, 1)
        return np.asarray(np.abs(means) / np.sqrt(variance))


@dataclass
class CUSUM(Shewhart):
    """Sums of what exceeds a slack, upwards and downwards, the larger of the two."""

    slack: float = 0.5  # in standard deviations: half the shift that is to be found

    def _statistic(self, z: Array) -> Array:
        return np.maximum(_page(z - self.slack), _page(-z - self.slack))


@dataclass
class TrainedPCA(LimitAlarms):
    """T² and Q of a row under a PCA of the standardised training rows."""

    statistic: Statistic = "t2"  # both: the larger of the two, in shares of training quantiles
    explained: float = 0.9  # share of the variance that the kept components reach

    def fit(self, table: Array) -> TrainedPCA:
        """The components, and how large both statistics are in training."""
        if self.statistic not in get_args(Statistic):
            raise ConfigError(
                f"statistic={self.statistic!r}: must be one of {', '.join(get_args(Statistic))}"
            )
        self.scale_ = training_scale(table)
        z = self.scale_(table)
        values, vectors = np.linalg.eigh(z.T @ z / len(z))
        values, vectors = values[::-1], vectors[:, ::-1]  # falling
        shares = np.cumsum(values) / max(float(values.sum()), np.finfo(np.float64).tiny)
        kept = int(np.searchsorted(shares, self.explained)) + 1 if values[0] > 0 else 0
        self.variances_, self.components_ = values[:kept], vectors[:, :kept]  # (k,), (C, k)
        limits = np.quantile(np.stack(self._both(z)), 0.99, axis=1)  # the usual limit of 1 %
        self.limits_ = np.where(limits > 0, limits, 1.0)
        self.training_scores_ = self.score(table)
        return self

    def score(self, table: Array) -> Array:
        """The charted statistic, row by row."""
        within, beside = self._both(self._standardised(table))
        if self.statistic == "t2":
            return within
        if self.statistic == "q":
            return beside
        return np.asarray(np.maximum(within / self.limits_[0], beside / self.limits_[1]))

    def contributions(self, table: Array) -> Array:
        """What each channel adds to the statistic; to both, in shares of their quantiles."""
        z = self._standardised(table)
        placed = z @ self.components_  # (n, k)
        within = z * ((placed / self.variances_) @ self.components_.T)  # adds up to T²
        beside = (z - placed @ self.components_.T) ** 2
        if self.statistic == "both":
            return np.asarray(within / self.limits_[0] + beside / self.limits_[1])
        return np.asarray(within if self.statistic == "t2" else beside)

    def _standardised(self, table: Array) -> Array:
        if not hasattr(self, "scale_"):
            raise NotFittedError("the chart has no training rows yet; call fit first")
        return self.scale_(table)

    def _both(self, z: Array) -> tuple[Array, Array]:
        """T² and Q of standardised rows, each (n,)."""
        placed = z @ self.components_  # (n, k)
        within = (placed**2 / self.variances_).sum(axis=1)  # no term below 0: nothing cancels
        return within, ((z - placed @ self.components_.T) ** 2).sum(axis=1)


def training_scale(table: Array) -> Scale:
    """Mean and standard deviation of the training rows, of which there must be some."""
    if len(table) < 2:
        raise TooShortError(f"{len(table)} training rows came; a standard deviation needs 2")
    return Scale.of(table)


def _page(steps: Array) -> Array:
    """The recursion c = max(0, c + step) of each column, from 0 on.

    It is the running sum, less the lowest that this has been, 0 at the start included.
    """
    sums = np.cumsum(steps, axis=0)
    return np.asarray(sums - np.minimum.accumulate(np.minimum(sums, 0.0), axis=0))


def _method(name: str, make: Callable[..., Detector], **settings: Any) -> Method:
    told = {"chart": name, **asdict(make(**settings))}  # type: ignore[call-overload]
    return Method(name, lambda seed: make(**settings), told, False, "Process control")


METHODS = (
    _method("shewhart", Shewhart),
    _method("ewma", EWMA),
    _method("cusum", CUSUM),
    _method("hotelling-t2", TrainedPCA),
    _method("pca-q", TrainedPCA, statistic="q"),
    _method("t2-and-q", TrainedPCA, statistic="both"),
)
