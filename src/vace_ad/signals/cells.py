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
Context enters as it is: a step of a set point is no fault, and other channels follow it. So do the
modes of operation that training shows (`modes`): columns beside the channels that tell which one a
row is in.

Residuals are in their own standard deviations. Nothing looks ahead, and rows in chunks of any size
give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.baseline_model import within
from vace_ad.signals.modes import ModeModel
from vace_ad.signals.protocol import Layout, prefixed, under
from vace_ad.signals.row_buffer import blocked_matmul

Array = NDArray[np.float64]

HALF_LIVES = (0.0, 2.0, 8.0, 32.0)  # of the averages of the rows before, in rows; 0: the last row
MOST_INNOVATION = 5.0  # standard deviations of a forecast's error that one row can bring in
WIDE = 400  # channels from which on rows stand alone, without averages: the matrix grows as (4 D)²
SHRINKAGES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # that held-out likelihood chooses from
FOLDS = 3  # contiguous parts of the training rows, each held out once
FARTHEST = 1e3  # training deviations beyond which a value counts as this far
LEAD = 256  # rows before a fold that fill the averages
LEAST_GAIN = 0.1  # nats a row by which modes must make the median channel more certain
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

    modes: ModeModel
    mean: Array  # (n_channels,)
    scale: Array  # (n_channels,), training standard deviations; 1 where a channel is constant
    varies: NDArray[np.bool_]  # (n_channels,)
    matrix: Array  # (n_features, (3 + n_averages) · n_channels): z to T'g, `past`, innovation
    offset: Array  # ((3 + n_averages) · n_channels,)
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
        return len(self.offset) // self.n_channels - 3

    def begin(self) -> CellStream:
        """Residuals of a stream of rows."""
        return CellStream(self)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        own = (name for name in self.__dataclass_fields__ if name != "modes")
        modes = prefixed("modes", self.modes.arrays())
        return {**modes, **{name: getattr(self, name) for name in own}}

    @staticmethod
    def layout(d: int) -> Layout:
        """What `arrays` gives for so many channels."""
        each = 3 if d > WIDE else 3 + len(HALF_LIVES)
        return {
            **{f"modes.{name}": kind for name, kind in ModeModel.layout(d).items()},
            **dict.fromkeys(("mean", "scale", "spread", "error"), ("F64", (d,))),
            "varies": ("BOOL", (d,)),
            "partner": ("I64", (d,)),
            "matrix": ("F64", (None, each * d)),
            "offset": ("F64", (each * d,)),
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The reverse of `arrays`."""
        modes = ModeModel.restored(under("modes", arrays))
        own = {name: array for name, array in arrays.items() if not name.startswith("modes.")}
        model = cls(modes, **own)
        if len(model.matrix) != (1 + model.n_averages) * model.n_columns:
            raise ValueError(f"its matrix has {len(model.matrix)} rows")
        return model

    @property
    def n_columns(self) -> int:
        """Channels, and columns that tell the mode."""
        return self.n_channels + self.modes.n_modes - 1

    def columns(self, rows: Array) -> Array:
        """Rows (n, n_channels) in training deviations, and the modes, (n, n_columns)."""
        return _columns(rows, self.mean, self.scale, self.modes)


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
        if not n:
            return Residuals(rows, rows, rows)
        x = model.columns(rows)
        if not model.n_averages:
            return self._residuals(blocked_matmul(x, model.matrix) + model.offset)
        if self._averages is None:
            self._averages = _Averages(model.n_averages, x[0])
        found = np.empty((n, model.matrix.shape[1]))
        at, most = 0, 1
        while at < n:  # up to the first row with a value that enters the averages bounded
            some = x[at : at + most]
            z = np.empty((len(some), 1 + model.n_averages, model.n_columns))
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
                bounded = some[taken - 1].copy()
                bounded[:d] -= beyond[taken - 1] * model.error
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
            return {"sums": np.empty((0, self._model.n_columns)), "weights": np.empty((0, 1))}
        return {"sums": self._averages.sums, "weights": self._averages.weights}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        model, sums, weights = self._model, state["sums"], state["weights"]
        self._averages = None
        if not len(sums) and not len(weights):
            return
        if sums.shape != (model.n_averages, model.n_columns) or len(weights) != len(sums):
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

    Channels that are `context` (n_channels,) enter the averages of the past unbounded. Modes count
    where they tell more of most channels than the other channels do.
    """
    parts = [part for part in parts if len(part)]
    modes = ModeModel.fit(np.concatenate(parts))
    plain = _learn(parts, context, modes.first)
    if modes.n_modes == 1:
        return plain
    found = _learn(parts, context, modes)
    varies = found.model.varies
    gain = np.log(plain.model.spread[varies] / found.model.spread[varies])
    return found if np.median(gain) > LEAST_GAIN else plain


def _learn(parts: Sequence[Array], context: NDArray[np.bool_] | None, modes: ModeModel) -> Learned:
    d = parts[0].shape[1]
    rows = np.concatenate(parts)
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    varies = scale > _CONSTANT * (np.abs(mean) + np.abs(rows).max(axis=0) * 1e-3)
    scale = np.where(varies, scale, 1.0)
    n_averages = 0 if d > WIDE else len(HALF_LIVES)
    columns = (_columns(part, mean, scale, modes) for part in parts)
    z = np.concatenate([_widened(part, n_averages) for part in columns])
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
    models = [_model(modes, mean, scale, varies, center, spread, other.inverse(shrinkage), bounded)
              for other in (*others, _Spectrum(total / len(z)))]  # fmt: skip
    folds = zip(models, pairwise(edges.tolist()), strict=False)
    held_out = [_streamed(model, parts, a, b) for model, (a, b) in folds]
    return Learned(models[-1], held_out)


def _columns(rows: Array, mean: Array, scale: Array, modes: ModeModel) -> Array:
    x = within((rows - mean) / scale, FARTHEST)
    return x if modes.n_modes == 1 else np.concatenate([x, modes.indicators(rows)], axis=1)


def _model(
    modes: ModeModel,
    mean: Array,
    scale: Array,
    varies: NDArray[np.bool_],
    center: Array,
    spread: Array,
    inverse: Array,
    bounded: Array,
) -> CellModel:
    d = len(mean)
    matrix, now, error, partner = _evaluated(inverse, d, d + modes.n_modes - 1)
    matrix[:, -d:] *= bounded  # an innovation of 0 is within any bound
    matrix = matrix / spread[:, None]
    partner = np.where(varies & varies[partner], partner, np.arange(d))
    return CellModel(
        modes, mean, scale, varies, matrix, -center @ matrix,
        now * spread[:d], error * spread[:d], partner,
    )  # fmt: skip


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


def _evaluated(inverse: Array, d: int, width: int) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """The matrix from z to all residuals, the deviations of `now` and innovation, and partners.

    Of the first d of `width` columns.
    """
    f = len(inverse) // width
    place = np.arange(f)[None] * width + np.arange(d)[:, None]  # (d, f), the entries of a channel
    blocks = np.linalg.inv(inverse[place[:, :, None], place[:, None, :]])  # (d, f, f)
    lower = np.linalg.cholesky(blocks)
    own = np.einsum("zdf,dfh->zhd", inverse[:, place], lower)  # L_zi · T
    diagonal = np.diag(inverse)[:d]
    past = inverse[:, :d] / np.sqrt(diagonal)
    partial = np.abs(inverse[:d, :d]) / np.sqrt(np.outer(diagonal, diagonal))
    np.fill_diagonal(partial, 0.0)
    ahead = np.linalg.inv(inverse[:width, :width])[:, :d]  # covariance of x given what came before
    error = np.sqrt(np.diag(ahead))
    innovation = inverse[:, :width] @ ahead / error
    matrix = np.concatenate([own.reshape(len(inverse), -1), past, innovation], axis=1)
    return matrix, np.sqrt(blocks[:, 0, 0]), error, partial.argmax(axis=1)
