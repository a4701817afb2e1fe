"""Fits every signal on the training rows, and scores these rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.frames.training_data import TrainingPart
from vace_ad.progress import Progress
from vace_ad.signals import Fitted, Signal, Training, kinds
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.ensemble import scores_of
from vace_ad.signals.folds import FOLDS

Array = NDArray[np.float64]
LEAD = 10  # lengths of rows by which a stream of held-out rows begins earlier
PIECES = 16  # that scores of a part are thinned to


class FitResult(NamedTuple):
    """What training rows gave: signals, and scores of rows by signals that did not see them."""

    parts: list[TrainingPart]  # that were long enough
    training: Training
    signals: list[Signal]
    held: Array  # (n,)
    held_now: list[Array]  # (n,) of each part: those that a stream gives at once; NaN: none


def learn(
    parts: Sequence[TrainingPart],
    config: VACEConfig,
    progress: Progress,
    watch: Stopwatch,
    scored: NDArray[np.bool_],
) -> FitResult:
    """Fit every signal on these parts, and on the channels (n_channels,) that are `scored`."""
    rows = [part.rows for part in parts]
    if not scored.all():
        mean = Normal.units(rows).mean
        rows = [np.where(scored, each, mean) for each in rows]
    training = Training.of(rows, config, progress)
    parts = [part for part in parts if len(part.rows) >= training.config.least_rows]
    watch.stamp("rows")
    fitted: list[Fitted] = []
    for kind in kinds(training.config.extra_signals):
        if kind.wanted(training.config) and (found := kind.fit(training)) is not None:
            fitted.append(found)
            watch.stamp(kind.key)
    held = held_out(fitted, training.normal, training.parts, training.config)
    watch.stamp("calibration")
    signals = [found.signal for found in fitted]
    final, now = [each[0] for each in held], [each[1] for each in held]
    return FitResult(list(parts), training, signals, np.concatenate(final), now)


def held_out(
    fitted: Sequence[Fitted], normal: Normal, parts: Sequence[Array], config: VACEConfig
) -> list[Array]:
    """Scores (2, n) of the rows of each part, by streams of signals that did not learn from them.

    Each block is a stream of its own, which begins some rows before it, because the first rows of a
    stream are its own baseline, and ends some after it. Of those rows no score is kept.
    """
    length, live = config.length, not config.reproduction.over_the_set
    lead = length * (LEAD if config.amplitude else 1)  # shape alone has no baseline
    found = [np.empty((2, len(part))) for part in parts]
    first = np.cumsum([0, *map(len, parts)])
    for k, block in enumerate(np.array_split(np.arange(first[-1]), FOLDS)):
        inside = [np.clip([block[0] - a, block[-1] + 1 - a], 0, b - a) for a, b in pairwise(first)]
        held = [(i, a, b) for i, (a, b) in enumerate(inside) if a < b]
        wide = [parts[i][max(a - lead, 0) : b + length] for i, a, b in held]
        scores = scores_of([each.unseen(k) for each in fitted], normal, wide, length, live)
        for (i, a, b), rows in zip(held, wide, strict=True):
            before = min(a, lead)
            found[i][:, a:b] = scores[:, before : before + b - a]
            scores = scores[:, len(rows) :]
    return found


def thinned(parts: Sequence[Array], most: int) -> Array:
    """The scores of all parts, of each an evenly spaced run of pieces where they are too many."""
    total = sum(map(len, parts))
    if total <= most:
        return np.concatenate(parts)
    kept = []
    for part in parts:
        pieces = np.array_split(part, max(1, min(PIECES, len(part))))
        kept += [piece[: max(1, round(len(piece) * most / total))] for piece in pieces]
    return np.concatenate(kept)


class Stopwatch:
    """Seconds of each stage of a fit."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def stamp(self, stage: str) -> None:
        """A stage has ended."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now
