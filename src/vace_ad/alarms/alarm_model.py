"""What a model knows for alarms.

The cells, how surprising their residuals are and how high excursions rise, all learned from
held-out training rows that ran through the same code as a stream will (`AlarmStream`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.constants import (
    MOST_NATS,
    MOST_STUCK_NATS,
    OUTDATED,
    SCORE_PRICE,
    WARM_UP,
)
from vace_ad.alarms.evidence import GRID, UNIT, Baseline, Nats, Surprise, judge_side_by_side, whole
from vace_ad.alarms.scan import N_CHANNEL_KINDS, Scanned, Tails, outlying
from vace_ad.signals.baseline_model import medians, within
from vace_ad.signals.cell_fit import Learned, learn
from vace_ad.signals.cells import CellModel, Residuals
from vace_ad.signals.protocol import Layout, prefixed, under

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FAR = 8.0  # robust deviations up to which training values count where outlying ones are looked for
NORMAL_MAD = 0.6745  # median absolute deviation of a normal distribution, in standard deviations
_BLOCK = 256  # held-out rows that are looked at together: few enough to stay in cache
SAME = 1e-6  # of its magnitude: a constant channel that is as near to its value has not moved
WIDTH = 3.0  # deviations of a residual to either side of the expected value


@dataclass(frozen=True)
class AlarmModel:
    """Cells, the surprise of their residuals, and the tails of excursions."""

    cells: CellModel
    surprise: Surprise  # of `now` and `past` of each channel
    score_level: Array  # (1,), median score of training rows; NaN where there is no score
    stuck: Nats  # (n_channels,), of a value that is repeated
    tails: Tails
    watched: NDArray[np.bool_]  # (n_channels,), those that are no context

    @classmethod
    def fit(
        cls,
        parts: Sequence[Array],
        scores: Array | None = None,
        watched: NDArray[np.bool_] | None = None,
        learned: Learned | None = None,
    ) -> Self:
        """Learn from complete training stretches.

        Channels that are not `watched` never alarm. `scores` are those of `with_scores`; `learned`
        are the cells, if there are any of the same rows.
        """
        model, found, idle = cls._evidence(parts, watched, learned)
        model = replace(model, tails=Tails.of(found, idle))
        return model if scores is None else model.with_scores(scores)

    def with_scores(self, scores: Array) -> Self:
        """The score raises alarms too.

        By `scores` (n,) of training rows, from signals that did not learn from them; without any
        that is known it never does.
        """
        known = scores[np.isfinite(scores)]
        if not len(known):
            return self
        tails = self.tails.with_score() if self.watched.any() else self.tails
        return replace(self, score_level=np.array([np.median(known)]), tails=tails)

    @classmethod
    def outlying(
        cls, parts: Sequence[Array], watched: NDArray[np.bool_]
    ) -> tuple[list[tuple[int, int]], Self | None]:
        """Rows [start, end) of complete training stretches that are unlike all others, in order.

        Values count up to `FAR` robust deviations from the median, so that a far one does not set
        the scale by which it is judged. Where no value is as far, a model comes along: the one that
        `fit` learns from these rows.
        """
        columns = np.concatenate([part.T for part in parts], axis=1)
        median = medians(columns)
        columns -= median[:, None]
        np.abs(columns, out=columns)
        deviation = medians(columns) / NORMAL_MAD
        most = np.where(deviation > 0, FAR * deviation, np.inf)
        bounded = bool((columns.max(axis=1) > most).any())
        del columns  # it is large
        if bounded:
            parts = [median + within(part - median, most) for part in parts]
        model, found, idle = cls._evidence(parts, watched, None)
        spans = outlying(found, idle)
        return spans, None if bounded else replace(model, tails=Tails.of(found, idle))

    @classmethod
    def _evidence(
        cls,
        parts: Sequence[Array],
        watched: NDArray[np.bool_] | None,
        learned: Learned | None,
    ) -> tuple[Self, list[Scanned], NDArray[np.bool_]]:
        """A model without tails, the excursions of held-out rows, and which lines are idle."""
        cells, held_out = learned or learn(parts, None if watched is None else ~watched)
        if learned:
            held_out = [part.copy() for part in held_out]  # what follows works in place
        watched = np.ones(cells.n_channels, bool) if watched is None else watched
        live = cells.varies & watched
        edges = np.cumsum([len(part) for part in held_out])[:-1]
        judge_side_by_side(held_out)
        surprise = Surprise.fit(held_out)
        repeated = [part[1:] == part[:-1] for part in parts]
        n = sum(map(len, repeated))
        share = np.add.reduce([part.sum(axis=0) for part in repeated]) / max(n, 1)
        stuck = whole(np.minimum(-np.log(np.clip(share, 1 / (n + 2), 1.0)), MOST_STUCK_NATS))
        stuck = stuck * live
        same = np.split(np.concatenate([repeats(part, None) for part in parts]), edges)
        young = np.concatenate([np.arange(len(part)) < WARM_UP for part in parts])
        every = zip(held_out, same, np.split(young, edges), strict=True)

        def lines(distances: Array, still: Mask, first: Mask) -> Iterator[Nats]:
            for at in range(0, len(first), _BLOCK):
                rows = slice(at, at + _BLOCK)
                nats = surprise.of(distances[rows])
                found = line_evidence(nats, stuck * still[rows], np.zeros_like(nats[:, :1]))
                found[first[rows]] = 0  # as in a stream
                yield found

        d = cells.n_channels
        found = [Scanned(partial(lines, *each), len(each[0]), d) for each in every]
        # A constant channel can only leave its value; the score is idle until `with_scores`.
        idle = np.concatenate([~watched, np.tile(~live, N_CHANNEL_KINDS - 1), [True]])
        zeros = np.zeros(len(idle))
        none = Tails(zeros.astype(np.int64), zeros, zeros, zeros, 0)
        model = cls(cells, surprise, np.array([np.nan]), stuck, none, watched)
        return model, found, idle

    @property
    def n_channels(self) -> int:
        """How many channels there are."""
        return self.cells.n_channels

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned, for the model file."""
        return {
            **prefixed("cells", self.cells.arrays()),
            "surprise": self.surprise.table,
            "score_level": self.score_level,
            "stuck": self.stuck,
            **prefixed("tails", self.tails.arrays()),
            "watched": self.watched,
        }

    @staticmethod
    def layout(d: int) -> Layout:
        """What `arrays` gives for so many channels."""
        n_lines = N_CHANNEL_KINDS * d + 1
        return {
            **{f"cells.{name}": kind for name, kind in CellModel.layout(d).items()},
            "watched": ("BOOL", (d,)),
            "surprise": ("I64", (len(GRID), 2 * d)),
            "score_level": ("F64", (1,)),
            "stuck": ("I64", (d,)),
            "tails.level": ("I64", (n_lines,)),
            **dict.fromkeys(("tails.excess", "tails.count", "tails.shape"), ("F64", (n_lines,))),
            "tails.n": ("I64", (1,)),
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The reverse of `arrays`."""
        if (arrays["score_level"] < 0).any():
            raise ValueError("its level of the score is negative")
        return cls(
            CellModel.restored(under("cells", arrays)),
            Surprise(arrays["surprise"]),
            arrays["score_level"],
            arrays["stuck"],
            Tails.restored(under("tails", arrays)),
            arrays["watched"],
        )

    def baseline(self) -> Baseline:
        """Of the residuals of `now` and `past` and of the score, as a stream begins."""
        baseline = Baseline(2 * self.n_channels + 1)
        baseline.mean[-1:] = np.nan_to_num(np.log1p(self.score_level))
        return baseline

    def judge(
        self, rows: Array, residuals: Residuals, scores: Array, baseline: Baseline
    ) -> tuple[Nats, Nats, Expected]:
        """Nats (n, 2 · n_channels) of cells and (n, 1) of scores against a baseline.

        And what was to be expected by it. A score counts by how many times its recent level it is.
        Where that level is as far above the training's, the model is out of date: its cells count
        for less.
        """
        followed = followed_by_baseline(residuals, scores)
        mean, spread = baseline.follow(followed)
        known = followed[:, -1:] > 0
        times = np.log(np.where(known, np.expm1(followed[:, -1:]), 1.0)) - mean[:, -1:]
        score = whole(within(np.where(known, times, 0.0), MOST_NATS))
        outdated = np.fmax(self.outdated(mean[:, -1:]), 1.0)
        cells = self.surprise.of(((followed - mean) / spread)[:, :-1])
        nats = np.asarray(cells / np.minimum(outdated**OUTDATED, OUTDATED), np.int64)
        d, unit = self.n_channels, self.cells.spread * self.cells.scale
        expected = rows - (residuals.now - mean[:, :d]) * unit
        reach = WIDTH * spread[:, :d] * unit
        if len(constant := self.cells.constant):
            value = self.cells.mean[constant]
            expected[:, constant], reach[:, constant] = value, 0.0
            nats[:, constant] = self._moved(rows[:, constant], value)
            nats[:, d + constant] = 0
        return nats, score, Expected(expected, expected - reach, expected + reach)

    def _moved(self, cells: Array, value: Array) -> Nats:
        """Nats of cells of constant channels: rarer than any training row where they have moved."""
        away = np.abs(cells - value) > SAME * np.maximum(np.abs(value), SAME)
        return np.asarray(whole(math.log(self.tails.n_rows + 2)) * away, np.int64)

    def outdated(self, level: Array) -> Array:
        """How far the model is out of date, from 1 on, by recent means of log(1 + score)."""
        return np.asarray(np.exp(level - SCORE_PRICE) / (1 + self.score_level))

    def cell_nats(self, rows: Array, start: int) -> Array:
        """Nats of the cells from row `start` on, (n, n_channels).

        Of rows (n, n_channels) that follow each other, after the last that is incomplete.
        """
        first = int(np.append(-1, np.flatnonzero(~np.isfinite(rows).all(axis=1)))[-1]) + 1
        rows, start = rows[first:], max(start - first, 0)
        none = np.full(len(rows), np.nan)
        nats, *_ = self.judge(rows, self.cells.begin().add(rows), none, self.baseline())
        return np.asarray(np.add.reduce(np.split(nats[start:], 2, axis=1)) / UNIT)


class Expected(NamedTuple):
    """What cells should be, given the other channels, each (n, n_channels)."""

    value: Array
    lower: Array  # of the interval
    upper: Array


def followed_by_baseline(residuals: Residuals, scores: Array | None = None) -> Array:
    """What has a recent mean and spread, (n, 2 · n_channels + 1).

    `now`, `past` and the log of 1 plus the score; a row without a score counts as 0.
    """
    scores = np.zeros(len(residuals.now)) if scores is None else scores
    return np.concatenate([residuals.now, residuals.past, log_scores(scores)], axis=1)


def log_scores(scores: Array) -> Array:
    """Log of 1 plus the score of each row, (n, 1); 0 where there is none."""
    return np.log1p(np.maximum(np.where(np.isfinite(scores), scores, 0.0), 0.0))[:, None]


def repeats(rows: Array, before: Array | None) -> NDArray[np.bool_]:
    """Which cells repeat the value of the row before, (n, n_channels)."""
    first = np.zeros((1, rows.shape[1]), bool) if before is None else (rows[:1] == before)
    return np.concatenate([first, rows[1:] == rows[:-1]])


def line_evidence(nats: Nats, stuck: Nats, score: Nats) -> Nats:
    """The evidence of all lines, as `scan.describe` numbers them, (n, n_lines)."""
    d = stuck.shape[1]
    now, past = nats[:, :d], nats[:, d:]
    return np.concatenate([now, past, past, stuck, score], axis=1)
