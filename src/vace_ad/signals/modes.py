"""Modes of operation, learned without being told: a row belongs to one of a few clouds of rows.

Rows are reduced to their first principal components, and a cloud is split in two as long as both
halves are large, are visited several times, are stayed in, and leave hardly a row in doubt. Each is
a normal distribution; a row belongs to the one that makes it most likely. Most plants have one
mode, and then nothing is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.baseline_model import medians, within
from vace_ad.signals.protocol import Layout
from vace_ad.signals.row_buffer import blocked_matmul

Array = NDArray[np.float64]
Modes = NDArray[np.intp]

MOST_MODES = 4
MOST_COMPONENTS = 8
MOST_ROWS = 20_000  # that modes are learned from, evenly spaced
FAR = 5.0  # training deviations from the median beyond which a value counts as this far
SHRINKAGE = 0.02  # of a mode's covariance
LEAST_SHARE = 0.05  # of the training rows in a mode
LEAST_VISITS = 5  # stretches of rows in a mode
LEAST_STAY = 24  # rows of the stretch that the median row of a mode lies in
CLEAR = 6.0  # twice the log of the odds against the next mode
LEAST_CLEAR = 0.98  # of the training rows that are as clear
_ROUNDS = 30  # of assigning rows and learning the modes from them
_DIRECTIONS = 2  # principal components of a mode along which a split is tried


class Laws(NamedTuple):
    """The normal distribution of each mode."""

    mean: Array  # (n_modes, n_components)
    whitening: Array  # (n_modes, n_components, n_components)
    cost: Array  # (n_modes,), −2 log likelihood that the distance does not tell


@dataclass(frozen=True)
class ModeModel:
    """Modes of operation, the first learned first."""

    center: Array  # (n_channels,), medians
    most: Array  # (n_channels,), deviations from them that count at most
    projection: Array  # (n_channels, n_components)
    mean: Array  # (n_modes, n_components)
    whitening: Array  # (n_modes, n_components, n_components)
    cost: Array  # (n_modes,), −2 log likelihood that the distance does not tell
    share: Array  # (n_modes,), of the training rows

    @classmethod
    def fit(cls, rows: Array) -> Self:
        """Learn from training rows (n, n_channels), in order of time."""
        rows = rows[:: -(-len(rows) // MOST_ROWS)]
        center, deviation = medians(rows.T.copy()), rows.std(axis=0)
        most = FAR * deviation
        scale = np.where(deviation > 0, deviation, 1.0)
        x = within(rows - center, most) / scale
        r = min(MOST_COMPONENTS, x.shape[1])
        axes = np.linalg.eigh(np.cov(x, rowvar=False, ddof=0).reshape(x.shape[1], -1))[1]
        projection = axes[:, ::-1][:, :r]
        wide = np.append(x @ projection, np.ones((len(x), 1)), axis=1)
        modes = _split(wide)
        laws = _normals(wide, modes, int(modes.max()) + 1)
        share = np.bincount(modes) / len(modes)
        return cls(center, most, projection / scale[:, None], *laws, share)

    @property
    def first(self) -> Self:
        """The first mode alone, which every row is in."""
        one = {name: getattr(self, name)[:1] for name in ("mean", "whitening", "cost")}
        return replace(self, **one, share=np.ones(1))

    @property
    def n_modes(self) -> int:
        """How many there are."""
        return len(self.cost)

    def of(self, rows: Array) -> Modes:
        """The mode of each row (n, n_channels)."""
        if self.n_modes == 1:
            return np.zeros(len(rows), np.intp)
        y = blocked_matmul(within(rows - self.center, self.most), self.projection)
        found = np.empty((len(y), self.n_modes))
        for i in range(self.n_modes):
            far = blocked_matmul(y - self.mean[i], self.whitening[i])
            found[:, i] = np.add.reduce(far * far, axis=1) + self.cost[i]
        return np.asarray(found.argmin(axis=1))

    def indicators(self, rows: Array) -> Array:
        """One column for each mode but the first, (n, n_modes − 1), standardised."""
        share = self.share[1:]
        inside = self.of(rows)[:, None] == np.arange(1, self.n_modes)
        return np.asarray((inside - share) / np.sqrt(share * (1 - share)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @staticmethod
    def layout(d: int) -> Layout:
        """What `arrays` gives for so many channels."""
        r = min(MOST_COMPONENTS, d)
        return {
            "center": ("F64", (d,)),
            "most": ("F64", (d,)),
            "projection": ("F64", (d, r)),
            "mean": ("F64", (None, r)),
            "whitening": ("F64", (None, r, r)),
            "cost": ("F64", (None,)),
            "share": ("F64", (None,)),
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The reverse of `arrays`."""
        counts = {len(arrays[name]) for name in ("mean", "whitening", "cost", "share")}
        if counts - set(range(1, MOST_MODES + 1)) or len(counts) > 1:
            raise ValueError(f"its modes of operation have the counts {sorted(counts)}")
        return cls(**arrays)


def _normals(wide: Array, modes: Modes, n: int) -> Laws:
    """The normal distribution of the rows in each of n modes; rows end with a one."""
    found = []
    for i in range(n):
        own = wide.take(np.flatnonzero(modes == i), axis=0)
        products = own.T @ own / len(own)
        mean = products[-1, :-1]
        covariance = products[:-1, :-1] - np.outer(mean, mean)
        ridge = SHRINKAGE * max(float(covariance.trace()) / len(mean), 1e-12)
        values, axes = np.linalg.eigh((1 - SHRINKAGE) * covariance + ridge * np.eye(len(mean)))
        cost = float(np.log(values).sum()) - 2 * np.log(len(own) / len(wide))
        found.append((mean, axes / np.sqrt(values), cost))
    return Laws(*(np.array(each) for each in zip(*found, strict=True)))


def _distances(laws: Laws, wide: Array) -> Array:
    """−2 log likelihood, up to a constant, of each row in each mode, (n, n_modes)."""
    found = np.empty((len(wide), len(laws.cost)))
    for i, (mean, whitening, cost) in enumerate(zip(*laws, strict=True)):
        far = wide @ np.append(whitening, -(mean @ whitening)[None], axis=0)
        found[:, i] = np.einsum("ij,ij->i", far, far) + cost
    return found


def _split(wide: Array) -> Modes:
    """The mode of each row of components, which ends with a one."""
    modes = np.zeros(len(wide), np.intp)
    n, tried = 1, 0
    while n < MOST_MODES and tried < n:
        halves = (_halved(wide, modes, tried, n, k) for k in range(_DIRECTIONS))
        found = next((half for half in halves if half is not None), None)
        if found is None:
            tried += 1
        else:
            modes, n, tried = found, n + 1, 0
    return modes


def _halved(wide: Array, modes: Modes, one: int, n: int, direction: int) -> Modes | None:
    """The modes with one of n split along one of its principal components; None: no real modes."""
    mine, y = modes == one, wide[:, :-1]
    r = y.shape[1]
    if direction >= r or mine.sum() < 2 * LEAST_SHARE * len(y):
        return None
    apart = y[mine] - y[mine].mean(axis=0)
    axis = np.linalg.eigh(apart.T @ apart)[1][:, -1 - direction]
    modes = modes.copy()
    modes[mine] = np.where(apart @ axis > 0, one, n)
    for _ in range(_ROUNDS):
        if np.bincount(modes, minlength=n + 1).min() < max(LEAST_SHARE * len(y), 4 * r):
            return None
        before, found = modes, _distances(_normals(wide, modes, n + 1), wide)
        modes = found.argmin(axis=1)
        if np.array_equal(modes, before):
            break
    two = np.partition(found, 1, axis=1)
    if (two[:, 1] - two[:, 0] > CLEAR).mean() < LEAST_CLEAR:
        return None
    edges = np.flatnonzero(np.diff(modes, prepend=-1, append=-1))
    stays = np.diff(edges)
    for i in range(n + 1):
        visits = stays[modes[edges[:-1]] == i]
        if len(visits) < LEAST_VISITS or np.median(np.repeat(visits, visits)) < LEAST_STAY:
            return None
    return modes
