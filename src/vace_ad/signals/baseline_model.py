"""Per-channel scaling, cross-channel ridge regression, and the folds of cross-validation.

A missing cell is rebuilt from the channels that are there, plus the noise that the channel has in
normal operation, so that signals see nothing anomalous where nothing was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.row_buffer import blocked_matmul

Array = NDArray[np.float64]

NOISE_ROWS = 512  # of held-out residuals kept, for cells that must be rebuilt
FOLDS = 4  # contiguous blocks of training rows, each held out once
LEAST = 8  # windows that a fit needs; with fewer outside the guard, the guard falls


class NormalFit(NamedTuple):
    """What training rows teach."""

    normal: Normal
    residuals: list[Array]  # of each part, held out, of deviation one
    without: list[Normal]  # learned without each of the blocks of rows; units are those of all


@dataclass(frozen=True)
class Normal:
    """Mean and deviation of each channel, and the regression of each on all others."""

    mean: Array  # (n_channels,)
    scale: Array  # (n_channels,)
    matrix: Array  # (n_channels, n_channels), from scaled rows to residuals of deviation one
    noise: Array  # (n, n_channels), residuals of a training stretch, in deviations
    farthest: float = 1e4  # deviations beyond which a value counts no more
    farthest_related: float = 20.0  # the same where channels are predicted from each other
    ridge: float = 0.03  # added to the correlations' diagonal

    @classmethod
    def fit(cls, parts: Sequence[Array]) -> NormalFit:
        """Learn from complete training rows.

        Residuals are held out, because with many channels and few rows a regression predicts its
        own rows far better than those to come.
        """
        units = cls.units(parts)
        rows = np.concatenate([units.scaled(part) for part in parts])
        np.clip(rows, -units.farthest_related, units.farthest_related, out=rows)
        regressions = _few_rows if len(rows) < units.n_channels else _many_rows
        blocks = np.array_split(rows, FOLDS)
        *others, every = regressions(blocks, units.ridge)
        left = np.concatenate([block @ own for block, own in zip(blocks, others, strict=True)])
        middle = slice(max(0, (len(left) - NOISE_ROWS) // 2), (len(left) + NOISE_ROWS) // 2)
        noise = left[middle].copy()
        deviation = left.std(axis=0)
        unit = np.where(deviation > 0, deviation, 1.0)
        left /= unit
        borders = np.cumsum([len(part) for part in parts])[:-1]
        normal, *without = (
            replace(units, matrix=matrix / unit, noise=noise) for matrix in (every, *others)
        )
        return NormalFit(normal, np.split(left, borders), without)

    @classmethod
    def units(cls, parts: Sequence[Array]) -> Self:
        """Units of the training rows; a constant channel counts in per cents of its level."""
        n = sum(map(len, parts))
        centre = parts[0][0]  # any row: keeps a huge offset from eating the variance
        mean = sum((part - centre).sum(axis=0) for part in parts) / n + centre
        widest = np.max([np.abs(part - mean).max(axis=0) for part in parts], axis=0)
        # Squares of what is smaller than this would be zero; a power of two rounds nothing.
        lift = np.where(widest < 1e-140, 2.0**600, 1.0)
        scale = np.sqrt(sum((((part - mean) * lift) ** 2).sum(axis=0) for part in parts) / n) / lift
        level = np.abs(mean)
        constant = scale <= 1e-14 * level
        scale = np.where(constant, np.where(level > 0, 0.01 * level, 1.0), scale)
        d = len(scale)
        return cls(np.asarray(mean), scale, np.eye(d), np.zeros((1, d)))

    @property
    def n_channels(self) -> int:
        """How many channels there are."""
        return len(self.mean)

    def scaled(self, rows: NDArray[np.floating]) -> Array:
        """Rows in deviations from the training mean, within ±`farthest`."""
        scaled = np.subtract(rows, self.mean, dtype=np.float64)
        scaled /= self.scale
        return within(scaled, self.farthest)

    def residuals(self, scaled: Array) -> Array:
        """Standardised residuals of each channel given the others, (n, n_channels)."""
        return blocked_matmul(within(scaled, self.farthest_related), self.matrix)

    def rebuild(self, rows: Array, first: int) -> Array:
        """Rows (n, n_channels) with NaN replaced by what the other channels lead to expect.

        With P the inverse of the correlations and G the missing channels, E[z_G | rest] is
        −P_GG⁻¹ (P z)_G where z_G = 0. `matrix` is P with scaled columns, which cancel. `first`
        is the number of the first row in its stream: the noise runs on with it.
        """
        missing = np.isnan(rows)
        z = np.clip((rows - self.mean) / self.scale, -self.farthest_related, self.farthest_related)
        z[missing] = 0.0
        filled = rows.copy()
        pattern = b""
        for k in np.flatnonzero(missing.any(axis=1)).tolist():
            if missing[k].tobytes() != pattern:
                pattern, gone = missing[k].tobytes(), np.flatnonzero(missing[k])
                towards = self.matrix[:, gone]  # (n_channels, n_gone)
                predict = -np.linalg.solve(_regular(towards[gone].T), towards.T)
            noise = self.noise[(first + k) % len(self.noise), gone]
            expected = (predict @ z[k] + noise) * self.scale[gone] + self.mean[gone]
            filled[k, gone] = expected
        return filled

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        return {"mean": self.mean, "scale": self.scale, "matrix": self.matrix, "noise": self.noise}

    def constants(self) -> dict[str, float]:
        """The numbers that are no setting."""
        return {name: getattr(self, name) for name in ("farthest", "farthest_related", "ridge")}


def within(rows: Array, most: float | Array) -> Array:
    """Rows no farther from zero than that; `np.clip` takes several times as long for one row."""
    return np.asarray(np.minimum(np.maximum(rows, -most), most))


def end_to_end(parts: Sequence[Array], axis: int = 0) -> Array:
    """Parts end to end; one alone is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)


def medians(columns: Array) -> Array:
    """`np.median` of each column (n_columns, n), whose values change places.

    NumPy's own looks at several places of the order at once, which takes several times as long.
    """
    middle = columns.shape[1] // 2
    columns.partition(middle, axis=1)
    if columns.shape[1] % 2:
        return columns[:, middle].copy()
    return np.asarray((columns[:, :middle].max(axis=1) + columns[:, middle]) / 2)


def quantile(columns: Array, share: float) -> Array:
    """`np.quantile` of each column (n_columns, n), whose values change places; see `medians`."""
    place = share * (columns.shape[1] - 1)
    k = int(place)
    columns.partition(k, axis=1)
    low = columns[:, k].copy()
    high = columns[:, k + 1 :].min(axis=1) if k + 1 < columns.shape[1] else low
    part = place - k
    return np.asarray(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))


def _many_rows(blocks: Sequence[Array], ridge: float) -> Iterator[Array]:
    """The matrix to residuals that all but one block teach, for each; then that of all."""
    products = np.stack([block.T @ block for block in blocks])
    total, n = products.sum(axis=0), sum(map(len, blocks))
    for block, own in zip(blocks, products, strict=True):
        yield to_residuals(_inverse((total - own) / max(n - len(block), 1), ridge))
    yield to_residuals(_inverse(total / max(n, 1), ridge))


def _few_rows(blocks: Sequence[Array], ridge: float) -> Iterator[Array]:
    """The same from the products of rows with rows, of which there are fewer than channels."""
    for i in range(len(blocks)):
        others = np.concatenate([each for k, each in enumerate(blocks) if k != i])
        yield to_residuals(_inverse_of_few(others, ridge))
    yield to_residuals(_inverse_of_few(np.concatenate(blocks), ridge))


def to_residuals(inverse: Array) -> Array:
    """The matrix from rows to residuals, from the inverse of the covariances.

    The regression of a channel on the others is read off it.
    """
    if len(inverse) == 1:
        return np.zeros((1, 1))  # nothing to relate to
    return np.asarray(inverse / np.diag(inverse))


def _inverse(covariances: Array, ridge: float) -> Array:
    return np.asarray(np.linalg.inv(covariances + ridge * np.eye(len(covariances))))


def _inverse_of_few(rows: Array, ridge: float) -> Array:
    """(Z'Z / n + ridge)⁻¹ = (1 − Z' (Z Z' + n ridge)⁻¹ Z) / ridge, for Z of n rows."""
    n, d = rows.shape
    inner = np.linalg.inv(rows @ rows.T + n * ridge * np.eye(n))
    found = rows.T @ (inner @ rows)
    np.subtract(np.eye(d), found, out=found)
    found /= ridge
    return found


def _regular(matrix: Array) -> Array:
    """The matrix with ones on a diagonal that is zero: a channel that relates to nothing."""
    return np.asarray(matrix + np.diag(np.where(np.diag(matrix) == 0, 1.0, 0.0)))


class Fold(NamedTuple):
    """Places of windows to fit on and of windows held out."""

    fit: NDArray[np.intp]
    held: NDArray[np.intp]


def contiguous_folds(
    starts: NDArray[np.intp],  # rows where windows start, rising
    length: int,  # rows a window covers
) -> Iterator[Fold]:
    """A fold for each block in turn; windows that share a row with it are in neither part.

    Of fewer windows than blocks, some blocks hold none.
    """
    edges = np.linspace(0, len(starts), FOLDS + 1).astype(np.intp)
    for a, b in pairwise(edges):
        if a == b:
            yield Fold(np.arange(len(starts)), np.arange(0))
            continue
        before = np.flatnonzero(starts <= starts[a] - length)
        after = np.flatnonzero(starts >= starts[b - 1] + length)
        fit = np.concatenate([before, after])
        if len(fit) < LEAST:
            fit = np.concatenate([np.arange(a), np.arange(b, len(starts))])
        if len(fit) == 0:
            fit = np.arange(a, b)
        yield Fold(fit, np.arange(a, b))
