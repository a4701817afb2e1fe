"""How calibration scores are distributed: empirical, with a generalised Pareto tail beyond.

Excesses over a high level follow, whatever the scores' distribution, nearly a generalised Pareto
law: P(S > u + y | S > u) = (1 + ξ y / σ)^(−1/ξ), with exp(−y / σ) at ξ = 0 (Pickands, 1975;
Balkema and de Haan, 1974).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vace_ad.errors import InputError

# Levels of the sample's quantiles that are kept, as shares of the rows above: dense in the tail.
_SHARES = np.concatenate([np.linspace(1.0, 0.1, 91), np.geomspace(0.1, 1e-6, 161)[1:]])

# A scale that is never zero, for scores that do not vary.
_TINY = 1e-12
SMALLEST = 1e-300


@dataclass(frozen=True)
class Pareto:
    """A generalised Pareto law of excesses y ≥ 0."""

    sigma: float
    xi: float

    def survival(self, y: ArrayLike) -> NDArray[np.float64]:
        """P(Y > y)."""
        z = np.maximum(np.asarray(y, dtype=np.float64), 0.0) / self.sigma
        if abs(self.xi) < 1e-9:
            return np.exp(-z)
        with np.errstate(divide="ignore"):
            inside = np.log(np.maximum(1.0 + self.xi * z, 0.0))
        return np.exp(-inside / self.xi)

    def excess(self, p: float) -> float:
        """The y with P(Y > y) = p."""
        if abs(self.xi) < 1e-9:
            return -self.sigma * float(np.log(p))
        return self.sigma * float(np.expm1(-self.xi * np.log(p))) / self.xi


def fit_pareto(
    excesses: NDArray[np.float64], independent: int, *, lightest: float = -0.5
) -> Pareto:
    """Fit a generalised Pareto law by probability-weighted moments, held back by prior sense.

    ξ = 2 − a₀ / (a₀ − 2a₁) with a₀ = E[Y], a₁ = E[Y (1 − F(Y))] (Hosking and Wallis, 1987).
    `independent` excesses tell ξ only within about 1/√independent, so it is drawn towards the
    exponential law as if twenty more had been seen there, and 1.5/independent is added: the
    predictive law of an exponential whose scale was estimated is heavier by 1/independent, and
    that of one whose shape was estimated too by somewhat more. σ keeps the sample's mean.
    """
    y = np.sort(excesses)
    mean = max(float(y.mean()), _TINY)
    share = (np.arange(1, len(y) + 1) - 0.35) / len(y)  # plotting positions of F
    first = float((y * (1.0 - share)).mean())
    xi = 2.0 - mean / max(mean - 2.0 * first, _TINY * mean)
    weight = independent / (independent + 20.0)
    xi = weight * float(np.clip(xi, -0.5, 0.5)) + 1.5 / max(independent, 2)
    xi = float(np.clip(xi, lightest, 0.9))
    return Pareto(sigma=mean * (1.0 - xi), xi=xi)


@dataclass(frozen=True)
class Tail:
    """Tail probabilities of scores."""

    knots: NDArray[np.float64]  # (k,) quantiles of the sample, rising
    shares: NDArray[np.float64]  # (k,) share of the sample from each knot on, falling
    level: float  # u: the Pareto law begins here
    share: float  # P(S > u)
    law: Pareto

    @classmethod
    def fit(cls, scores: NDArray[np.float64], spacing: int = 1) -> Tail:
        """Learn from calibration scores in time order; NaN are left out.

        Scores nearer than `spacing` rows share evidence: they count as one observation when the
        tail's uncertainty is judged.
        """
        sample = np.asarray(scores, dtype=np.float64)
        sample = sample[np.isfinite(sample)]
        n = len(sample)
        if n < 2:
            raise InputError(f"got {n} calibration scores; at least 2 finite ones are needed")
        shares = _SHARES[n * _SHARES >= 1.0]
        knots, first = np.unique(np.quantile(sample, 1.0 - shares), return_index=True)
        shares = shares[first]  # of equal knots the largest share: P(S ≥ s)
        # Counting is trusted until about twenty independent excesses are left.
        share = min(max(20.0 * spacing, 50.0) / n, 0.2)
        level = float(np.quantile(sample, 1.0 - share))
        above = np.flatnonzero(sample > level)
        if len(above) == 0:  # the highest score is common: nothing is known beyond it
            spread = max(float(np.ptp(sample)), abs(level) * 1e-6, _TINY)
            return cls(knots, shares, level, 1.0 / n, Pareto(spread, 0.0))
        independent = 1 + int((np.diff(above) > spacing).sum())
        # A law with an end would call scores beyond it impossible; the exponential is the
        # lightest tail that leaves every score a chance.
        law = fit_pareto(sample[above] - level, independent, lightest=0.0)
        return cls(knots, shares, level, len(above) / n, law)

    def probability(self, scores: ArrayLike) -> NDArray[np.float64]:
        """P(a normal row scores at least this), in (0, 1]; NaN for NaN."""
        s = np.asarray(scores, dtype=np.float64)
        inside = np.interp(s, self.knots, self.shares)
        beyond = self.share * self.law.survival(s - self.level)
        p = np.where(s > self.level, beyond, np.maximum(inside, self.share))
        return np.where(np.isnan(s), np.nan, np.clip(p, SMALLEST, 1.0))

    def quantile(self, p: float) -> float:
        """The score that a normal row exceeds with probability p."""
        if p < self.share:
            return self.level + self.law.excess(p / self.share)
        return float(np.interp(-p, -self.shares, self.knots))


@dataclass(frozen=True)
class Calibration:
    """The tail of the calibration scores, and how many rows it rests on."""

    n_rows: int  # calibration rows with a score
    tail: Tail
    spacing: int  # rows nearer than this share evidence

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64], spacing: int = 1) -> Calibration:
        """Learn from scores of training rows in time order; NaN where a row has none.

        `spacing` is how many rows share evidence: the patch length.
        """
        return cls(int(np.isfinite(scores).sum()), Tail.fit(scores, spacing), spacing)
