"""Incremental updates: statistics of old rows combined with new rows.

What a model measures stays as it was fitted: units, regressions, encoders. So what it learned about
the measured values stays valid, and new rows are added to it. Of old values only a quantile or two
is known; between and beyond them they are taken to follow a normal or an exponential law through
those. The new values count as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.progress import Progress, silent
from vace_ad.signals.baseline_model import Normal

Array = NDArray[np.float64]

MOST_WEIGHT = 0.5  # of new rows: what was learned before always counts as much at least


@dataclass(frozen=True)
class Update:
    """New normal rows, for a model that was learned from others."""

    parts: Sequence[Array]  # complete stretches, (n_rows, n_channels) each
    accepted: Sequence[Array]  # stretches that a person called normal: they count in full
    n_before: int  # rows that were learned from so far
    normal: Normal  # as it was fitted
    config: VACEConfig
    progress: Progress = silent

    @property
    def weight(self) -> float:
        """The share of the new rows in all."""
        n = sum(map(len, self.parts))
        return min(MOST_WEIGHT, n / max(1, n + self.n_before))

    @cached_property
    def scaled(self) -> list[Array]:
        """The parts in deviations of their channels."""
        return [self.normal.scaled(part) for part in self.parts]

    @cached_property
    def scaled_accepted(self) -> list[Array]:
        """The same of the accepted stretches."""
        return [self.normal.scaled(part) for part in self.accepted]


def merged_edges(
    low: Array,  # (k,), the quantile `edge` of the old values
    high: Array,  # (k,), their quantile 1 − edge
    values: Array,  # (n, k), the new ones
    weight: float,  # of the new ones
    edge: float,
) -> tuple[Array, Array]:
    """The quantiles `edge` and 1 − edge of old and new values together."""
    law = NormalDist()
    middle, deviation = (low + high) / 2, (high - low) / (2 * law.inv_cdf(1 - edge)) + 1e-12

    def below(x: Array) -> Array:
        return np.array([law.cdf(each) for each in ((x - middle) / deviation).tolist()])

    def at(share: Array) -> Array:
        return np.asarray(middle + deviation * [law.inv_cdf(each) for each in share.tolist()])

    rising = np.sort(np.ascontiguousarray(values.T), axis=1)  # (k, n)
    return (
        _quantile(rising, weight, edge, below, at),
        _quantile(rising, weight, 1 - edge, below, at),
    )


def merged_quantile(old: Array, values: Array, weight: float, quantile: float) -> Array:
    """The quantile (k,) of old values, of which it is known, and of new ones (n, k); all ≥ 0."""
    unit, tail = np.maximum(old, 1e-12), float(np.log(1 - quantile))

    def below(x: Array) -> Array:
        return np.asarray(-np.expm1(tail * x / unit))

    def at(share: Array) -> Array:
        return np.asarray(np.log1p(-share) / tail * unit)

    rising = np.sort(np.ascontiguousarray(values.T), axis=1)
    return _quantile(rising, weight, quantile, below, at)


def _quantile(
    rising: Array,  # (k, n), the new values in order
    weight: float,
    share: float,
    below: Callable[[Array], Array],  # the share of old values up to x
    at: Callable[[Array], Array],  # its inverse
) -> Array:
    """Where so many of old and new values lie below, (k,).

    First between which two new values, by halving; there, the old values alone decide.
    """
    k, n = rising.shape
    columns, first, last = np.arange(k), np.zeros(k, np.intp), np.full(k, n, np.intp)
    while (first < last).any():  # the number of new values that lie below
        m = (first + last) // 2
        x = rising[columns, np.minimum(m, n - 1)]
        under = ((1 - weight) * below(x) + weight * (m + 1) / n < share) & (first < last)
        first, last = np.where(under, m + 1, first), np.where(under, last, m)
    rest = (share - weight * first / n) / (1 - weight)
    found = at(np.clip(rest, 1e-300, 1 - 1e-16))
    found = np.where(rest >= 1, np.inf, np.where(rest <= 0, -np.inf, found))  # at a new value
    least = np.where(first > 0, rising[columns, np.maximum(first, 1) - 1], -np.inf)
    most = np.where(first < n, rising[columns, np.minimum(first, n - 1)], np.inf)
    return np.asarray(np.clip(found, least, most))


def merged_mean(old: Array, new: Array, weight: float) -> Array:
    """The mean of both."""
    return np.asarray((1 - weight) * old + weight * new)
