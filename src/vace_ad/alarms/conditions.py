"""Conditions that training has not shown: context channels beyond their range.

An alarm raised then may be a fault, or a way of operation that nobody has seen yet. It is reported
as what it is, and counted apart from faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.frames.columns import column_of

Array = NDArray[np.float64]
MARGIN = 0.1  # of the training range by which a channel may leave it
LINGER = 64  # rows after which other channels no longer follow: two half-lives of the longest past


@dataclass(frozen=True)
class Conditions:
    """The range of every channel in training."""

    low: Array  # (n_channels,)
    high: Array  # (n_channels,)

    @classmethod
    def fit(cls, parts: Sequence[Array]) -> Self:
        """Learn from complete training rows."""
        low = np.min([part.min(axis=0) for part in parts], axis=0)
        return cls(low, np.max([part.max(axis=0) for part in parts], axis=0))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        return {"low": self.low, "high": self.high}

    def merged(self, parts: Sequence[Array]) -> Conditions:
        """With the range of new normal rows."""
        new = Conditions.fit(parts)
        return Conditions(np.minimum(self.low, new.low), np.maximum(self.high, new.high))

    def outside(
        self, rows: Array, channels: Sequence[str], watched: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which context cells are beyond training, (n, n_channels).

        Words that training does not know are 0 in all channels of their column, which is marked.
        """
        if watched.all():
            return np.zeros(rows.shape, bool)
        room = MARGIN * (self.high - self.low)
        found = ((rows < self.low - room) | (rows > self.high + room)) & ~watched
        for column in {column_of(channels[i]) for i in np.flatnonzero(~watched).tolist()} - {""}:
            places = [i for i, name in enumerate(channels) if column_of(name) == column]
            found[:, places[0]] |= (rows[:, places] < 0.5).all(axis=1)
        return np.asarray(found)

    def words(self, rows: Array, channels: Sequence[str], watched: NDArray[np.bool_]) -> str:
        """What was outside training in these rows; empty where nothing was."""
        outside = self.outside(rows, channels, watched)
        found = []
        for i in np.flatnonzero(outside.any(axis=0)).tolist():
            if column := column_of(channels[i]):
                found.append(f"{column} with a value never seen")
                continue
            values = rows[outside[:, i], i]
            high = values.max() > self.high[i]
            value, limit = (values.max(), self.high[i]) if high else (values.min(), self.low[i])
            found.append(
                f"{channels[i]} {value:.4g}, trained {'to' if high else 'from'} {limit:.4g}"
            )
        return "; ".join(found)
