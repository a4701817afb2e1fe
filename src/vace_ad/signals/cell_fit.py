"""Learning the cells: the joint normal distribution of rows and their recent past, and modes.

The shrinkage is chosen by held-out likelihood, and each fold is judged by a model that did not see
it, run as a stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.cells import (
    HALF_LIVES,
    WIDE,
    Averages,
    CellModel,
    CellStream,
    Residuals,
    columns_of,
)
from vace_ad.signals.modes import ModeModel

Array = NDArray[np.float64]

SHRINKAGES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # that held-out likelihood chooses from
FOLDS = 3  # contiguous parts of the training rows, each held out once
LEAD = 256  # rows before a fold that fill the averages
LEAST_GAIN = 0.1  # nats a row by which modes must make the median channel more certain
_CONSTANT = 1e-9  # of its magnitude: a channel that varies less does not vary


class Learned(NamedTuple):
    """A model, and the residuals of the training rows by models that did not see them."""

    model: CellModel
    held_out: list[Residuals]  # of contiguous pieces, in order


def learn(parts: Sequence[Array], context: NDArray[np.bool_] | None = None) -> Learned:
    """Fit on complete training stretches (n_rows, n_channels), and hold out each fold once.

    Channels that are `context` (n_channels,) enter the averages of the past unbounded. Modes count
    where they tell more of most channels than the other channels do.
    """
    parts = [part for part in parts if len(part)]
    modes = ModeModel.fit(np.concatenate(parts))
    models = _models(parts, context, modes.first)
    if modes.n_modes > 1:
        found = _models(parts, context, modes)
        varies = found[-1].varies
        gain = np.log(models[-1].spread[varies] / found[-1].spread[varies])
        models = found if np.median(gain) > LEAST_GAIN else models
    folds = zip(models, _folds(sum(map(len, parts))), strict=False)
    return Learned(models[-1], [_streamed(model, parts, a, b) for model, (a, b) in folds])


def _folds(n: int) -> list[tuple[int, int]]:
    """Rows [start, end) of each of the contiguous folds of so many."""
    return list(pairwise(np.linspace(0, n, FOLDS + 1).astype(int).tolist()))


def _models(
    parts: Sequence[Array], context: NDArray[np.bool_] | None, modes: ModeModel
) -> list[CellModel]:
    """A model without each fold, and that of all rows."""
    d = parts[0].shape[1]
    rows = np.concatenate(parts)
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    varies = scale > _CONSTANT * (np.abs(mean) + np.abs(rows).max(axis=0) * 1e-3)
    scale = np.where(varies, scale, 1.0)
    n_averages = 0 if d > WIDE else len(HALF_LIVES)
    columns = (columns_of(part, mean, scale, modes) for part in parts)
    z = np.concatenate([_widened(part, n_averages) for part in columns])
    center, spread = z.mean(axis=0), z.std(axis=0)
    spread = np.where(spread > _CONSTANT, spread, 1.0)
    z = (z - center) / spread
    pieces = [z[a:b] for a, b in _folds(len(z))]
    products = [piece.T @ piece for piece in pieces]
    total = np.add.reduce(products)
    others = [_Spectrum((total - own) / max(len(z) - len(piece), 1))
              for own, piece in zip(products, pieces, strict=True)]  # fmt: skip
    likelihoods = [
        other.likelihoods(own, len(piece))
        for other, own, piece in zip(others, products, pieces, strict=True)
    ]
    shrinkage = SHRINKAGES[int(np.argmax(np.add.reduce(likelihoods)))]
    bounded = np.ones(d, bool) if context is None else ~context
    shrunk = (1 - shrinkage) * total / len(z) + shrinkage * np.eye(len(total))
    # An inverse alone costs less than the spectrum that a choice of shrinkages needs.
    inverses = [*(other.inverse(shrinkage) for other in others), np.linalg.inv(shrunk)]
    return [_model(modes, mean, scale, varies, center, spread, inverse, bounded)
            for inverse in inverses]  # fmt: skip


def _model(
    modes: ModeModel,
    mean: Array,
    scale: Array,
    varies: NDArray[np.bool_],
    center: Array,
    spread: Array,
    inverse: Array,
    bounded: NDArray[np.bool_],
) -> CellModel:
    d = len(mean)
    matrix, now, error, partner = _evaluated(inverse, d + modes.n_modes - 1, bounded)
    matrix = matrix / spread[:, None]
    partner = np.where(varies & varies[partner], partner, np.arange(d))
    return CellModel(
        modes, mean, scale, varies, matrix, -center @ matrix,
        now * spread[:d], error * spread[:d], partner,
    )  # fmt: skip


def _streamed(model: CellModel, parts: Sequence[Array], a: int, b: int) -> Residuals:
    """Residuals of rows [a, b) of all parts, each part run as a stream from some rows before.

    By one product for many rows, which is faster and differs by rounding.
    """
    found, first = [], 0
    for part in parts:
        low, high = max(a - first, 0), min(b - first, len(part))
        first += len(part)
        if low < high:
            early = max(low - LEAD, 0)
            every = CellStream(model, np.matmul).add(part[early:high])
            found.append([x[low - early :] for x in every])
    return Residuals(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _widened(x: Array, n_averages: int) -> Array:
    """Rows (n, (1 + n_averages)·n_channels) with averages of the rows before each."""
    z = np.empty((len(x), 1 + n_averages, x.shape[1]))
    z[:, 0] = x
    if n_averages:
        Averages(n_averages, x[0]).add(x, z[:, 1:])
    return z.reshape(len(x), -1)


class _Spectrum:
    """A correlation matrix by its eigenvectors, so that any shrinkage is cheap."""

    def __init__(self, correlations: Array) -> None:
        values, self._vectors = np.linalg.eigh(correlations)
        self._values = np.maximum(values, 0.0)

    def inverse(self, shrinkage: float) -> Array:
        """((1 − a)·C + a·I)⁻¹."""
        values = (1 - shrinkage) * self._values + shrinkage
        return np.asarray((self._vectors / values) @ self._vectors.T)

    def likelihoods(self, products: Array, n: int) -> Array:
        """Log likelihood, up to a constant, of n rows with these products, for each shrinkage."""
        along = np.einsum("ij,ij->j", self._vectors, products @ self._vectors)
        a = np.array(SHRINKAGES)[:, None]
        values = (1 - a) * self._values + a
        return np.asarray(-n * np.log(values).sum(axis=1) - (along / values).sum(axis=1))


def _evaluated(
    inverse: Array, width: int, bounded: NDArray[np.bool_]
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """The matrix from z to all residuals, the deviations of `now` and innovation, and partners.

    Of the channels, the first of `width` columns. Those that are `bounded` have an innovation: what
    the past, and the other columns now, did not tell. That of the others is 0, within any bound.
    """
    d = len(bounded)
    f = len(inverse) // width
    place = np.arange(f)[None] * width + np.arange(d)[:, None]  # (d, f), the entries of a channel
    blocks = np.linalg.inv(inverse[place[:, :, None], place[:, None, :]])  # (d, f, f)
    lower = np.linalg.cholesky(blocks)
    own = np.einsum("zdf,dfh->zhd", inverse[:, place], lower)  # L_zi · T
    diagonal = np.diag(inverse)[:d]
    past = inverse[:, :d] / np.sqrt(diagonal)
    partial = np.abs(inverse[:d, :d]) / np.sqrt(np.outer(diagonal, diagonal))
    np.fill_diagonal(partial, 0.0)
    own_now = np.flatnonzero(bounded)
    ahead = np.linalg.inv(inverse[np.ix_(own_now, own_now)])  # covariance given all else
    error, innovation = np.ones(d), np.zeros((len(inverse), d))
    error[own_now] = np.sqrt(np.diag(ahead))
    innovation[:, own_now] = inverse[:, own_now] @ ahead / error[own_now]
    matrix = np.concatenate([own.reshape(len(inverse), -1), past, innovation], axis=1)
    return matrix, np.sqrt(blocks[:, 0, 0]), error, partial.argmax(axis=1)
