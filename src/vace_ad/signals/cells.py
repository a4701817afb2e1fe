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
deviations from its forecast by the past alone, and while it is that far for at most `CONFIRM` rows
its forecast enters instead, so that a fault does not spoil the rows after it.
Context enters as it is: a step of a set point is no fault, and other channels follow it. So do the
modes of operation that training shows (`modes`): columns beside the channels that tell which one a
row is in.

Residuals are in their own standard deviations. Nothing looks ahead, and rows in chunks of any size
give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
CONFIRM = 2  # rows that far in succession whose forecasts enter instead: a spike leaves no trace
WIDE = 400  # channels from which on rows stand alone, without averages: the matrix grows as (4 D)²
FARTHEST = 1e3  # training deviations beyond which a value counts as this far
_TOGETHER = 256  # rows that are taken at once while none is bounded
_POWERS = 64  # rows whose averages share a start


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
    def constant(self) -> NDArray[np.intp]:
        """The channels that do not vary, in order."""
        return np.flatnonzero(~self.varies)

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
        if not ((model.partner >= 0) & (model.partner < model.n_channels)).all():
            raise ValueError("its channels go with channels that are not there")
        return model

    @property
    def n_columns(self) -> int:
        """Channels, and columns that tell the mode."""
        return self.n_channels + self.modes.n_modes - 1

    def columns(self, rows: Array) -> Array:
        """Rows (n, n_channels) in training deviations, and the modes, (n, n_columns)."""
        return columns_of(rows, self.mean, self.scale, self.modes)


class CellStream:
    """Residuals along a stream; nothing reaches across a cut."""

    def __init__(
        self, model: CellModel, product: Callable[[Array, Array], Array] = blocked_matmul
    ) -> None:
        """The default `product` of rows and a matrix gives the same bits in any chunks."""
        self._model, self._product = model, product
        self._averages: Averages | None = None  # of the rows so far
        self._far = np.zeros(model.n_channels, np.int64)  # rows in succession beyond the bound

    def cut(self) -> None:
        """Begin anew: the next row does not follow the last one."""
        self._averages = None
        self._far = np.zeros(self._model.n_channels, np.int64)

    def add(self, rows: Array) -> Residuals:
        """The residuals of the next rows (n, n_channels), complete and in order."""
        return self._residuals(self.widened(rows)) if len(rows) else Residuals(rows, rows, rows)

    def widened(self, rows: Array) -> Array:
        """The next rows with the averages before each, (n, 1 + n_averages, n_columns)."""
        model, n, d = self._model, *rows.shape
        x = model.columns(rows)
        if not model.n_averages:
            return x[:, None]
        if self._averages is None:
            self._averages = Averages.begin(x[0])
        z = np.empty((n, 1 + model.n_averages, model.n_columns))
        z[:, 0] = x
        at, most = 0, 1
        while at < n:  # up to the first row with a value that enters the averages bounded
            some = z[at : at + most]
            after = self._averages.add(some[:, 0], some[:, 1:])
            innovation = self._times(some, slice(-d, None))
            far = (np.abs(innovation) > MOST_INNOVATION).any(axis=1)
            taken = int(far.argmax()) + 1 if far.any() else len(some)
            if far.any():
                within_bound = self._averages.add(some[: taken - 1, 0], some[: taken - 1, 1:])
                entered = self._entered(x[at + taken - 1], innovation[taken - 1], taken == 1)
                after = within_bound.add(entered[None], np.empty((1, *some.shape[1:]))[:, 1:])
            else:
                self._far = np.zeros(d, np.int64)
            self._averages = after
            at, most = at + taken, 1 if far.any() else min(2 * most, _TOGETHER)
        return z

    def _times(self, z: Array, columns: slice) -> Array:
        """Rows (n, 1 + n_averages, n_columns) times some columns of the matrix."""
        model = self._model
        found = self._product(z.reshape(len(z), -1), model.matrix[:, columns])
        return np.asarray(found + model.offset[columns])

    def _entered(self, row: Array, innovation: Array, alone: bool) -> Array:
        """What enters the averages of a row (n_columns,) with values beyond the bound.

        The row before was within the bound, unless it comes `alone`.
        """
        beyond = innovation - within(innovation, MOST_INNOVATION)
        far = np.where(beyond != 0, (self._far if alone else 0) + 1, 0)
        left_out = np.where((far > 0) & (far <= CONFIRM), innovation, beyond)
        self._far, entered = far, row.copy()
        entered[: len(left_out)] -= left_out * self._model.error
        return within(entered, FARTHEST)

    def _residuals(self, z: Array) -> Residuals:
        d = self._model.n_channels
        found = self._times(z, slice(-d))
        own = found[:, :-d].reshape((*z.shape[:-1], d))
        return Residuals(own[:, 0], found[:, -d:], np.add.reduce(own * own, axis=1))

    def state(self) -> dict[str, NDArray[Any]]:
        """The averages of the past; empty right after a cut."""
        found, sums, n = self._averages, np.empty((0, self._model.n_columns)), 0
        if found is not None:
            sums, n = np.concatenate([found.last[None], found.sums]), found.n
        return {"sums": sums, "n": np.array([n]), "far": self._far}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        model, sums, far, n = self._model, state["sums"], state["far"], int(state["n"][0])
        if far.shape != (model.n_channels,):
            raise ValueError(f"rows beyond the bound have the shape {far.shape}")
        self._averages, self._far = None, far.copy()
        if not len(sums):
            return
        if sums.shape != (model.n_averages, model.n_columns) or n < 0:
            raise ValueError(f"averages of the past have the shape {sums.shape}, of {n} rows")
        self._averages = Averages(sums[0], sums[1:].copy(), n)


class Averages(NamedTuple):
    """Averages of the rows so far with each half-life; of the first row, itself.

    s_t = keep · s_{t−1} + take · x_t is worked out for many rows at once, as
    keep^k · (s_0 + Σ take · keep^−j · x_j), with a fresh start every `_POWERS` rows. The sum runs
    row by row, so the bits do not depend on how rows are cut into calls.
    """

    last: Array  # (n_columns,), the last row: what is left of it all after a half-life of 0
    sums: Array  # (n_averages − 1, n_columns), the brackets of the others
    n: int  # rows so far

    @classmethod
    def begin(cls, first: Array) -> Averages:
        """As if the first row (n_columns,) had come before itself too."""
        return cls(first, _TAKE * first, 0)

    def add(self, rows: Array, averages: Array) -> Averages:
        """What is known after these rows (n, n_columns).

        Fills `averages` (n, n_averages, n_columns) of the rows before each of them.
        """
        averages[:1, 0], averages[1:, 0] = self.last, rows[:-1]
        sums, n, at = self.sums, self.n, 0
        while at < len(rows):
            k = n % _POWERS
            some = rows[at : at + _POWERS - k]
            m = len(some)
            every = np.empty((m + 1, *sums.shape))
            every[0] = sums
            np.multiply(_UP[k : k + m], some[:, None], out=every[1:])
            np.add.accumulate(every, axis=0, out=every)
            found = np.multiply(every[:-1], _DOWN[k : k + m], out=averages[at : at + m, 1:])
            if n < len(_WEIGHTS):
                found[: len(_WEIGHTS) - n] /= _WEIGHTS[n : n + m]
            sums = every[-1] if k + m < _POWERS else every[-1] * _DOWN[_POWERS]
            at, n = at + m, n + m
        return Averages(rows[-1] if at else self.last, sums, n)


_KEEP = np.array([0.5 ** (1 / h) for h in HALF_LIVES[1:]])[:, None]
_TAKE = 1 - _KEEP
_UP = _TAKE * _KEEP ** -np.arange(1.0, _POWERS + 1)[:, None, None]
_DOWN = _KEEP ** np.arange(0.0, _POWERS + 1)[:, None, None]
_WEIGHTS = 1 - _KEEP ** np.arange(1.0, 54 * HALF_LIVES[-1])[:, None, None]  # from then on 1


def columns_of(rows: Array, mean: Array, scale: Array, modes: ModeModel) -> Array:
    """Rows (n, n_channels) in training deviations, and columns that tell the mode."""
    x = within((rows - mean) / scale, FARTHEST)
    return x if modes.n_modes == 1 else np.concatenate([x, modes.indicators(rows)], axis=1)
