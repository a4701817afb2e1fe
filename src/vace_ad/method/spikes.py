"""Spikes: rows that stand out from the rows around them, which longer windows blur.

A row stands out by its distance from the median of the nine rows around it, in each channel. So a
level that drifts or jumps is no spike, nor is a pulse of more than four rows: those are for the
other signals. What counts is how far a row stands out beyond all that training rows did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.method.drift import weighed
from vace_ad.method.folds import FOLDS

Array = NDArray[np.float64]

REACH = 4  # rows before and after that a row is held against
LEAST = 1.0  # deviations of a channel that a row may always stand out
BLOCK = 2048  # rows held at a time


@dataclass(frozen=True)
class Spikes:
    """How far training rows stood out."""

    edge: Array  # (n_channels,), at most, in deviations
    usual: Array  # (1,), mean evidence of held-out training rows

    @classmethod
    def fit(cls, parts: Sequence[Array]) -> tuple[Spikes, list[Array]]:
        """Learn from scaled training rows; also their evidence (1, n_rows) a part, held out."""
        blocks = np.array_split(
            np.concatenate([h for part in parts for h in _heights(part)]), FOLDS
        )
        highest = np.stack([block.max(axis=0, initial=0) for block in blocks])
        others = [_edge(np.delete(highest, k, axis=0)) for k in range(FOLDS)]
        evidence = np.concatenate([_evidence(*pair) for pair in zip(blocks, others, strict=True)])
        usual = evidence.mean(keepdims=True)
        borders = np.cumsum([len(part) for part in parts])[:-1]
        return cls(_edge(highest), usual), np.split(evidence[None] / (1 + usual), borders, axis=1)

    def evidence(self, rows: Array, used: Array, half_life: float) -> tuple[Array, Array]:
        """Evidence (1, n) of scaled rows (n, n_channels), and what it is used to after them."""
        found = [_evidence(heights, self.edge) for heights in _heights(rows)]
        return weighed(np.concatenate(found)[None], used, half_life)

    def weigh(self, heights: Array, used: Array, half_life: float) -> tuple[Array, Array]:
        """Evidence (1, n) of rows that stand out by `heights`, and what it is used to after."""
        return weighed(_evidence(heights, self.edge)[None], used, half_life)


def stand_out(rows: Array) -> Array:
    """|row − median of the nine rows around it|, (n, n_channels); the ends are repeated."""
    first, last = rows[:1].repeat(REACH, axis=0), rows[-1:].repeat(REACH, axis=0)
    near = np.concatenate([first, rows, last])
    a, b, c = near[:-2], near[1:-1], near[2:]  # three rows in a row, from each on
    low, high = np.minimum(a, b), np.maximum(a, b)
    middle = np.maximum(low, np.minimum(high, c))
    low, high = np.minimum(low, c), np.maximum(high, c)
    # Of three sorted triples, the median of all nine is the middle one of the largest low, the
    # middle middle and the smallest high value.
    lows, middles, highs = ((x[:-6], x[3:-3], x[6:]) for x in (low, middle, high))
    largest, smallest = np.maximum.reduce(lows), np.minimum.reduce(highs)
    return np.abs(rows - _middle(largest, _middle(*middles), smallest))


def _heights(rows: Array) -> Iterator[Array]:
    """How far rows stand out, in blocks that stay in cache."""
    for a in range(0, len(rows), BLOCK):
        before = min(a, REACH)
        yield stand_out(rows[a - before : a + BLOCK + REACH])[before : before + BLOCK]


def _middle(a: Array, b: Array, c: Array) -> Array:
    """The middle one of three, element by element."""
    return np.asarray(np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c)))


def _edge(highest: Array) -> Array:
    """The edge from the highest rows of some blocks, (n_blocks, n_channels)."""
    return np.asarray(np.maximum(highest.max(axis=0), LEAST))


def _evidence(heights: Array, edge: Array) -> Array:
    """Excess beyond the edge, summed over channels, both on a log scale, (n,)."""
    return np.asarray(np.log1p(np.log1p(np.maximum(heights / edge - 1, 0)).sum(axis=1)))
