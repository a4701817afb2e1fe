"""Learning the cells: the joint normal distribution of rows and their recent past, and modes.

The shrinkage is chosen by held-out likelihood, and each fold is judged by a model that did not see
it, run as a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.baseline_model import end_to_end
from vace_ad.signals.cells import (
    HALF_LIVES,
    WIDE,
    Averages,
    CellModel,
    CellStream,
    columns_of,
)
from vace_ad.signals.modes import ModeModel

Array = NDArray[np.float64]

SHRINKAGES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # that held-out likelihood chooses from
FOLDS = 3  # contiguous parts of the training rows, each held out once
LEAD = 256  # rows before a fold that fill the averages
LEAST_GAIN = 0.1  # nats a row by which modes must make the median channel more certain
_BLOCK = 1024  # rows that are widened together: few enough to stay in cache
_CONSTANT = 1e-9  # of its magnitude: a channel that varies less does not vary


class Learned(NamedTuple):
    """A model, and the residuals of the training rows by models that did not see them."""

    model: CellModel
    held_out: list[Array]  # (n, 2 · n_channels), `now` and `past` of contiguous pieces, in order


def learn(parts: Sequence[Array], context: NDArray[np.bool_] | None = None) -> Learned:
    """Fit on complete training stretches (n_rows, n_channels), and hold out each fold once.

    Channels that are `context` (n_channels,) enter the averages of the past unbounded. Modes count
    where they tell more of most channels than the other channels do.
    """
    parts = [part for part in parts if len(part)]
    modes = ModeModel.fit(end_to_end(parts))
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
    rows = end_to_end(parts)
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    varies = scale > _CONSTANT * (np.abs(mean) + largest * 1e-3)
    scale = np.where(varies, scale, 1.0)
    n_averages = 0 if d > WIDE else len(HALF_LIVES)
    products = _products(parts, n_averages, lambda rows: columns_of(rows, mean, scale, modes))
    products, center, spread = _standardised(products)
    total = np.add.reduce(products)
    sizes = [b - a for a, b in _folds(len(rows))]
    others = [_Spectrum((total - own) / max(len(rows) - n, 1))
              for own, n in zip(products, sizes, strict=True)]  # fmt: skip
    likelihoods = [
        other.likelihoods(own, n) for other, own, n in zip(others, products, sizes, strict=True)
    ]
    shrinkage = SHRINKAGES[int(np.argmax(np.add.reduce(likelihoods)))]
    bounded = np.ones(d, bool) if context is None else ~context
    shrunk = (1 - shrinkage) * total / len(rows) + shrinkage * np.eye(len(total))
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


def _streamed(model: CellModel, parts: Sequence[Array], a: int, b: int) -> Array:
    """`now` and `past` of rows [a, b) of all parts, each part run as a stream from rows before.

    By one product for many rows, which is faster and differs by rounding.
    """
    d = model.n_channels
    kept = np.r_[:d, -2 * d : -d]
    matrix, offset = model.matrix[:, kept], model.offset[kept]
    found, first, at = np.empty((b - a, 2 * d)), 0, 0
    for part in parts:
        low, high = max(a - first, 0), min(b - first, len(part))
        first += len(part)
        stream = CellStream(model, np.matmul)
        for start in range(max(low - LEAD, 0), high, _BLOCK) if low < high else ():
            z = stream.widened(part[start : min(start + _BLOCK, high)])[max(low - start, 0) :]
            some = found[at : at + len(z)]
            np.matmul(z.reshape(len(z), -1), matrix, out=some)
            some += offset
            at += len(z)
    return found


def _products(
    parts: Sequence[Array], n_averages: int, columns: Callable[[Array], Array]
) -> list[Array]:
    """Z'Z of the columns of each fold, widened by averages of the past and a one."""
    n_columns = columns(parts[0][:1]).shape[1]
    width = (1 + n_averages) * n_columns
    folds, first = _folds(sum(map(len, parts))), 0
    found = [np.zeros((width + 1, width + 1)) for _ in folds]
    z, wide = np.ones((_BLOCK, width + 1)), np.empty((_BLOCK, 1 + n_averages, n_columns))
    for part in parts:
        averages = Averages.begin(columns(part[:1])[0])
        for at in range(0, len(part), _BLOCK):
            some = columns(part[at : at + _BLOCK])
            wide[: len(some), 0] = some
            if n_averages:
                averages = averages.add(some, wide[: len(some), 1:])
            z[:, :width] = wide.reshape(_BLOCK, -1)
            for own, (a, b) in zip(found, folds, strict=True):
                piece = z[: len(some)][max(a - first, 0) : max(b - first, 0)]
                own += piece.T @ piece
            first += len(some)
    return found


def _standardised(products: Sequence[Array]) -> tuple[list[Array], Array, Array]:
    """The same of standardised columns, and their mean and deviation over all folds."""
    total = np.add.reduce(products)
    center = total[-1, :-1] / total[-1, -1]
    variance = np.diag(total)[:-1] / total[-1, -1] - center * center
    spread = np.sqrt(np.maximum(variance, 0.0))
    # What rounding leaves of a constant column is no deviation.
    spread = np.where(spread > np.maximum(_CONSTANT, 1e-7 * np.abs(center)), spread, 1.0)
    found = []
    for own in products:
        off = own[:-1, :-1] - np.outer(center, own[-1, :-1])
        off -= np.outer(own[:-1, -1] - own[-1, -1] * center, center)
        found.append(off / np.outer(spread, spread))
    return found, center, spread


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
