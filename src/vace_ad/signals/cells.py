"""Cells: what every channel should be now, given the other channels and the recent past.

A cell is one channel at one row. Each row is widened by what came before it, z_t = (x_t, x_t-1,
averages with half-lives 2, 8 and 32 rows), and the joint normal distribution of z is learned:
C = (1 − a)·corr(z) + a·I, with the shrinkage a by held-out likelihood. Everything below is read off
L = C⁻¹ and g = L·(z − m), where g_i are the entries of channel i and L_ii its diagonal block:

- `now`: the residual of x_i given all other channels, its own past left out;
- `past`: the residual of x_i given everything else, its own past included;
- `share`: g_i' L_ii⁻¹ g_i, how much of the row's distance from normal channel i accounts for
  (the reconstruction-based contribution). With L_ii⁻¹ = T T', it is the squared length of T' g_i,
  whose first entry is `now`.

What came before is bounded: a value enters the averages no farther than `MOST_INNOVATION` standard
deviations from its forecast by the past alone, so that a fault does not spoil the rows after it.
Context enters as it is: a step of a set point is no fault, and other channels follow it.

Residuals are in their own standard deviations. Nothing looks ahead, and rows in chunks of any size
give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.baseline_model import within
from vace_ad.signals.row_buffer import blocked_matmul

Array = NDArray[np.float64]

HALF_LIVES = (0.0, 2.0, 8.0, 32.0)  # of the averages of the rows before, in rows; 0: the last row
MOST_INNOVATION = 5.0  # standard deviations of a forecast's error that one row can bring in
WIDE = 400  # channels from which on rows stand alone, without averages: the matrix grows as (4 D)²
SHRINKAGES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # that held-out likelihood chooses from
FOLDS = 3  # contiguous parts of the training rows, each held out once
FARTHEST = 1e3  # training deviations beyond which a value counts as this far
LEAD = 256  # rows before a fold that fill the averages
_TOGETHER = 64  # rows that are taken at once while none is bounded
_CONSTANT = 1e-9  # of its magnitude: a channel that varies less does not vary


class Residuals(NamedTuple):
    """What the model says of some rows, each (n, n_channels)."""

    now: Array  # residual given the other channels
    past: Array  # residual given the other channels and the own past
    share: Array  # contribution to the row's distance from normal


@dataclass(frozen=True)
class CellModel:
    """The joint normal distribution of rows and their recent past, ready to be evaluated."""

    mean: Array  # (n_channels,)
    scale: Array  # (n_channels,), training standard deviations; 1 where a channel is constant
    varies: NDArray[np.bool_]  # (n_channels,)
    matrix: Array  # (n_features, n_features + 2 · n_channels): z − m to T'g, `past`, innovation
    offset: Array  # (n_features + 2 · n_channels,)
    spread: Array  # (n_channels,), standard deviation of `now` in training deviations
    error: Array  # (n_channels,), that of the innovation, the error of a forecast by the past
    partner: NDArray[np.int64]  # (n_channels,), the channel it goes with most closely; itself: none

    @property
    def n_channels(self) -> int:
        """How many channels there are."""
        return len(self.mean)

    @property
    def n_averages(self) -> int:
        """Averages of the past that a channel brings beside its value."""
        return len(self.matrix) // self.n_channels - 1

    def begin(self) -> CellStream:
        """Residuals of a stream of rows."""
        return CellStream(self)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class CellStream:
    """Residuals along a stream; nothing reaches across a cut."""

    def __init__(self, model: CellModel) -> None:
        self._model = model
        self._averages: _Averages | None = None  # of the rows so far

    def cut(self) -> None:
        """Begin anew: the next row does not follow the last one."""
        self._averages = None

    def add(self, rows: Array) -> Residuals:
        """The residuals of the next rows (n, n_channels), complete and in order."""
        model, n, d = self._model, *rows.shape
        x = within((rows - model.mean) / model.scale, FARTHEST)
        if not n:
            return Residuals(x, x, x)
        if not model.n_averages:
            return self._residuals(blocked_matmul(x, model.matrix) + model.offset)
        if self._averages is None:
            self._averages = _Averages(model.n_averages, x[0])
        found = np.empty((n, model.matrix.shape[1]))
        at, most = 0, 1
        while at < n:  # up to the first row with a value that enters the averages bounded
            some = x[at : at + most]
            z = np.empty((len(some), 1 + model.n_averages, d))
            z[:, 0] = some
            before = self._averages.add(some, z[:, 1:])
            part = blocked_matmul(z.reshape(len(some), -1), model.matrix) + model.offset
            beyond = part[:, -d:] - within(part[:, -d:], MOST_INNOVATION)
            far = beyond.any(axis=1)
            taken = int(far.argmax()) + 1 if far.any() else len(some)
            found[at : at + taken] = part[:taken]
            if far.any():
                self._averages = before
                self._averages.add(some[: taken - 1], z[: taken - 1, 1:])
                bounded = some[taken - 1] - beyond[taken - 1] * model.error
                self._averages.add(bounded[None], z[:1, 1:])
            at, most = at + taken, 1 if far.any() else min(2 * most, _TOGETHER)
        return self._residuals(found)

    def _residuals(self, found: Array) -> Residuals:
        n, d = len(found), self._model.n_channels
        own = found[:, : -2 * d].reshape(n, 1 + self._model.n_averages, d)
        return Residuals(own[:, 0], found[:, -2 * d : -d], np.add.reduce(own * own, axis=1))

    def state(self) -> dict[str, NDArray[Any]]:
        """The averages of the past; empty right after a cut."""
        if self._averages is None:
            return {"sums": np.empty((0, self._model.n_channels)), "weights": np.empty((0, 1))}
        return {"sums": self._averages.sums, "weights": self._averages.weights}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        model, sums, weights = self._model, state["sums"], state["weights"]
        self._averages = None
        if not len(sums) and not len(weights):
            return
        if sums.shape != (model.n_averages, model.n_channels) or len(weights) != len(sums):
            raise ValueError(f"averages of the past have the shape {sums.shape}")
        self._averages = _Averages(model.n_averages, sums[0])
        self._averages.sums, self._averages.weights = sums.copy(), weights.copy()


class _Averages:
    """Averages of the rows so far with each half-life; of the first row, itself."""

    def __init__(self, n: int, first: Array) -> None:
        self._keep = np.array([0.5 ** (1 / h) if h else 0.0 for h in HALF_LIVES[:n]])[:, None]
        self._take = 1 - self._keep
        self.sums, self.weights = self._take * first, self._take  # as if it had come before

    def add(self, rows: Array, averages: Array) -> _Averages:
        """Fill `averages` (n, n_averages, n_channels) of the rows before each of these.

        Gives back what was known before them.
        """
        before = copy(self)
        keep, take, sums, weights = self._keep, self._take, self.sums, self.weights
        for t, row in enumerate(rows):
            np.divide(sums, weights, out=averages[t])
            sums = sums * keep + take * row
            weights = weights * keep + take
        self.sums, self.weights = sums, weights
        return before


class Learned(NamedTuple):
    """A model, and the residuals of the training rows by models that did not see them."""

    model: CellModel
    held_out: list[Residuals]  # of contiguous pieces, in order


def learn(parts: Sequence[Array], context: NDArray[np.bool_] | None = None) -> Learned:
    """Fit on complete training stretches (n_rows, n_channels), and hold out each fold once.

    Channels that are `context` (n_channels,) enter the averages of the past unbounded.
    """
    parts = [part for part in parts if len(part)]
    d = parts[0].shape[1]
    rows = np.concatenate(parts)
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    varies = scale > _CONSTANT * (np.abs(mean) + np.abs(rows).max(axis=0) * 1e-3)
    scale = np.where(varies, scale, 1.0)
    n_averages = 0 if d > WIDE else len(HALF_LIVES)
    z = np.concatenate([_widened((part - mean) / scale, n_averages) for part in parts])
    center, spread = z.mean(axis=0), z.std(axis=0)
    spread = np.where(spread > _CONSTANT, spread, 1.0)
    z = (z - center) / spread
    edges = np.linspace(0, len(z), FOLDS + 1).astype(int)
    pieces = [z[a:b] for a, b in pairwise(edges.tolist())]
    products = [piece.T @ piece for piece in pieces]
    total = np.add.reduce(products)
    others = [_Spectrum((total - own) / max(len(z) - len(piece), 1))
              for own, piece in zip(products, pieces, strict=True)]  # fmt: skip
    shrinkage = max(
        SHRINKAGES,
        key=lambda a: sum(
            other.likelihood(a, own, len(piece))
            for other, own, piece in zip(others, products, pieces, strict=True)
        ),
    )
    bounded = np.ones(d) if context is None else np.where(context, 0.0, 1.0)
    models = [_model(mean, scale, varies, center, spread, other.inverse(shrinkage), bounded)
              for other in (*others, _Spectrum(total / len(z)))]  # fmt: skip
    folds = zip(models, pairwise(edges.tolist()), strict=False)
    held_out = [_streamed(model, parts, a, b) for model, (a, b) in folds]
    return Learned(models[-1], held_out)


def _model(
    mean: Array,
    scale: Array,
    varies: NDArray[np.bool_],
    center: Array,
    spread: Array,
    inverse: Array,
    bounded: Array,
) -> CellModel:
    d = len(mean)
    matrix, now, error, partner = _evaluated(inverse, d)
    matrix[:, -d:] *= bounded  # an innovation of 0 is within any bound
    matrix = matrix / spread[:, None]
    partner = np.where(varies & varies[partner], partner, np.arange(d))
    return CellModel(
        mean, scale, varies, matrix, -center @ matrix, now * spread[:d], error * spread[:d], partner
    )


def _streamed(model: CellModel, parts: Sequence[Array], a: int, b: int) -> Residuals:
    """Residuals of rows [a, b) of all parts, each part run as a stream from some rows before."""
    found, first = [], 0
    for part in parts:
        low, high = max(a - first, 0), min(b - first, len(part))
        first += len(part)
        if low < high:
            early = max(low - LEAD, 0)
            every = model.begin().add(part[early:high])
            found.append([x[low - early :] for x in every])
    return Residuals(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _widened(x: Array, n_averages: int) -> Array:
    """Rows (n, (1 + n_averages)·n_channels) with averages of the rows before each."""
    x = within(x, FARTHEST)
    z = np.empty((len(x), 1 + n_averages, x.shape[1]))
    z[:, 0] = x
    if n_averages:
        _Averages(n_averages, x[0]).add(x, z[:, 1:])
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

    def likelihood(self, shrinkage: float, products: Array, n: int) -> float:
        """Log likelihood, up to a constant, of n rows with these products."""
        values = (1 - shrinkage) * self._values + shrinkage
        along = np.einsum("ij,ij->j", self._vectors, products @ self._vectors)
        return float(-n * np.log(values).sum() - (along / values).sum())


def _evaluated(inverse: Array, d: int) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """The matrix from z to all residuals, the deviations of `now` and innovation, and partners."""
    f = len(inverse) // d
    place = np.arange(f)[None] * d + np.arange(d)[:, None]  # (d, f), the entries of a channel
    blocks = np.linalg.inv(inverse[place[:, :, None], place[:, None, :]])  # (d, f, f)
    lower = np.linalg.cholesky(blocks)
    own = np.einsum("zdf,dfh->zhd", inverse[:, place], lower)  # L_zi · T
    diagonal = np.diag(inverse)[:d]
    past = inverse[:, :d] / np.sqrt(diagonal)
    partial = np.abs(inverse[:d, :d]) / np.sqrt(np.outer(diagonal, diagonal))
    np.fill_diagonal(partial, 0.0)
    ahead = np.linalg.inv(inverse[:d, :d])  # covariance of x given all that came before
    error = np.sqrt(np.diag(ahead))
    innovation = inverse[:, :d] @ ahead / error
    matrix = np.concatenate([own.reshape(len(inverse), -1), past, innovation], axis=1)
    return matrix, np.sqrt(blocks[:, 0, 0]), error, partial.argmax(axis=1)
