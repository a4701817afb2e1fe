"""Spikes: single rows that differ from their neighbours.

A row stands out by its distance from the median of the nine rows around it, in each channel. So a
level that drifts or jumps is no spike, nor is a pulse of more than four rows: those are for the
other signals. What counts is how far a row stands out beyond all that training rows did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.baseline_model import FOLDS, Normal
from vace_ad.signals.incremental import Update, merged_mean
from vace_ad.signals.protocol import (
    AmplitudeSignal,
    Arrays,
    Evidence,
    Fitted,
    Layout,
    Training,
    prefixed,
    under,
)
from vace_ad.signals.row_buffer import RowBuffer
from vace_ad.signals.smoothing import PastAverage

Array = NDArray[np.float64]

REACH = 4  # rows before and after that a row is held against
BLOCK = 2048  # rows held at a time


@dataclass(frozen=True)
class Spike(AmplitudeSignal):
    """How far training rows stood out."""

    key: ClassVar[str] = "spike"
    lines: ClassVar[Mapping[str, str]] = {"spike": "single rows that differ from their neighbours"}

    normal: Normal
    edge: Array  # (n_channels,), at most, in deviations
    mean_evidence: Array  # (1,), mean evidence of held-out training rows
    half_life: int  # rows
    least: float = 1.0  # deviations of a channel that a row may always stand out

    @classmethod
    def fit(cls, training: Training) -> Fitted:
        """Learn from scaled training rows."""
        none = np.zeros(training.normal.n_channels)
        edge, others, mean_evidence = _learned(training.scaled, [none], cls.least)
        signal = cls(training.normal, edge, mean_evidence, training.config.drift_half_life)
        return Fitted(signal, [replace(signal, edge=each) for each in others])

    def updated(self, update: Update) -> Fitted:
        """The edge goes as far as old or new rows did."""
        named = [h for part in update.scaled_accepted for h in _heights(part)]
        before = [self.edge, *(each.max(axis=0, initial=0) for each in named)]
        edge, others, mean_evidence = _learned(update.scaled, before, self.least)
        mean_evidence = merged_mean(self.mean_evidence, mean_evidence, update.weight)
        signal = replace(self, edge=edge, mean_evidence=mean_evidence)
        return Fitted(signal, [replace(signal, edge=each) for each in others])

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream."""
        return SpikeEvidence(self)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned."""
        return {"edge": self.edge, "mean_evidence": self.mean_evidence}

    @classmethod
    def layout(cls, config: VACEConfig, n_channels: int, constants: Mapping[str, Any]) -> Layout:
        """What `arrays` gives."""
        return {"edge": ("F64", (n_channels,)), "mean_evidence": ("F64", (1,))}

    @classmethod
    def restored(
        cls, arrays: Arrays, normal: Normal, config: VACEConfig, constants: Mapping[str, Any]
    ) -> Self:
        """The reverse of `arrays`."""
        return cls(
            normal,
            arrays["edge"],
            arrays["mean_evidence"],
            config.drift_half_life,
            constants["least"],
        )


class SpikeEvidence(Evidence):
    """Spikes along a stream."""

    def __init__(self, spike: Spike) -> None:
        super().__init__(1)
        self._spike = spike
        self._mean_evidence = PastAverage(spike.mean_evidence, spike.half_life)
        self._begin()

    def _begin(self) -> None:
        self._rows = RowBuffer(len(self._spike.edge))
        self._given = 0  # rows in the buffer whose evidence has been given out

    def add(self, rows: Array, scaled: Array | None = None) -> Array:
        """The evidence that is complete after these rows."""
        self._rows.add(self._spike.normal.scaled(rows) if scaled is None else scaled)
        n = len(self._rows)
        done = self._weighed(n - REACH)
        # What has just become complete: a row on its own cannot be told from a step.
        lacks = len(rows) - done.shape[1]
        self.now = np.concatenate([np.zeros((1, lacks)), done], axis=1) if lacks else done
        self._rows.drop(max(0, n - 2 * REACH))
        self._given = max(0, len(self._rows) - REACH)
        return done

    def _weighed(self, end: int) -> Array:
        """Evidence (1, m) of rows of the buffer up to `end`."""
        if end <= self._given:
            return np.empty((1, 0))
        heights = stand_out(self._rows.all, self._given, end)
        found = _evidence(heights, self._spike.edge)[:, None]  # (m, 1)
        return np.asarray((found / (1 + self._mean_evidence.add(found))).T)

    def end(self) -> Array:
        """The evidence that is left of the stretch."""
        done = self._weighed(len(self._rows))
        self._begin()
        return done

    def state(self) -> dict[str, NDArray[Any]]:
        """The running mean, and the last rows."""
        given = {"given": np.array([self._given])}
        waiting = prefixed("rows", self._rows.state())
        return {**given, **waiting, **prefixed("mean_evidence", self._mean_evidence.state())}

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        self._given = int(state["given"][0])
        self._mean_evidence.resume(under("mean_evidence", state))
        self._rows.resume(under("rows", state))


def stand_out(rows: Array, start: int = 0, end: int | None = None) -> Array:
    """|row − median of the nine rows around it| of rows [start, end), (n, n_channels)."""
    return np.abs(rows[start:end] - medians(rows, start, end))


def medians(rows: Array, start: int = 0, end: int | None = None) -> Array:
    """The median of the nine rows around rows [start, end); the ends are repeated."""
    end = len(rows) if end is None else end
    near = rows[max(0, start - REACH) : end + REACH]
    lacks = max(0, REACH - start), max(0, end + REACH - len(rows))
    if any(lacks):
        near = np.concatenate([rows[:1].repeat(lacks[0], 0), near, rows[-1:].repeat(lacks[1], 0)])
    a, b, c = near[:-2], near[1:-1], near[2:]  # three rows in a row, from each on
    low, high = np.minimum(a, b), np.maximum(a, b)
    middle = np.maximum(low, np.minimum(high, c))
    low, high = np.minimum(low, c), np.maximum(high, c)
    # Of three sorted triples, the median of all nine is the middle one of the largest low, the
    # middle middle and the smallest high value.
    largest = np.maximum(np.maximum(low[:-6], low[3:-3]), low[6:])
    smallest = np.minimum(np.minimum(high[:-6], high[3:-3]), high[6:])
    return _middle(largest, _middle(middle[:-6], middle[3:-3], middle[6:]), smallest)


def _heights(rows: Array) -> Iterator[Array]:
    """How far rows stand out, in blocks that stay in cache."""
    for a in range(0, len(rows), BLOCK):
        yield stand_out(rows, a, min(a + BLOCK, len(rows)))


def _middle(a: Array, b: Array, c: Array) -> Array:
    """The middle one of three, element by element."""
    return np.asarray(np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c)))


def _learned(
    parts: Sequence[Array],  # scaled rows
    before: Sequence[Array],  # (n_channels,) each: how far rows stood out that are not here
    least: float,
) -> tuple[Array, list[Array], Array]:
    """The edge, those without each block of rows, and the mean evidence of rows by these, (1,)."""
    blocks = np.array_split(np.concatenate([h for part in parts for h in _heights(part)]), FOLDS)
    highest = [block.max(axis=0, initial=0) for block in blocks]
    edge, *others = (
        np.max([*before, *highest[:k], *highest[k + 1 :]], axis=0, initial=least)
        for k in (FOLDS, *range(FOLDS))
    )
    evidence = np.concatenate([_evidence(*pair) for pair in zip(blocks, others, strict=True)])
    return edge, others, evidence.mean(keepdims=True)


def _evidence(heights: Array, edge: Array) -> Array:
    """Excess beyond the edge, summed over channels, both on a log scale, (n,)."""
    return np.asarray(np.log1p(np.log1p(np.maximum(heights / edge - 1, 0)).sum(axis=1)))
