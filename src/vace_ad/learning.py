"""What a fit does with training rows: every signal in turn, and the scores that it gives them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.frames.training import Part
from vace_ad.progress import Progress
from vace_ad.signals import KINDS, Signal, Training
from vace_ad.signals.normal import Normal
from vace_ad.signals.together import scores_of

Array = NDArray[np.float64]
MOST_SEEN = 10_000  # training rows whose scores by the finished signals are kept
PIECES = 16  # that scores of a part are thinned to


class Learned(NamedTuple):
    """What training rows gave: signals, and scores of the rows that did not see them."""

    parts: list[Part]  # that were long enough
    training: Training
    signals: list[Signal]
    held: Array  # (n,)


def learn(
    parts: Sequence[Part],
    config: VACEConfig,
    progress: Progress,
    watch: Stopwatch,
    scored: NDArray[np.bool_],
) -> Learned:
    """Fit every signal on these parts, and on the channels (n_channels,) that are `scored`."""
    rows = [part.rows for part in parts]
    if not scored.all():
        mean = Normal.units(rows).mean
        rows = [np.where(scored, each, mean) for each in rows]
    training = Training.of(rows, config, progress)
    parts = [part for part in parts if len(part.rows) >= training.config.least_rows]
    watch.stamp("rows")
    signals: list[Signal] = []
    held_out = [np.zeros(len(part)) for part in training.parts]
    for kind in KINDS:
        if not kind.wanted(training.config):
            continue
        fitted = kind.fit(training)
        if fitted is None:
            continue
        signal, found = fitted
        signals.append(signal)
        held_out = [rows + more.sum(axis=0) for rows, more in zip(held_out, found, strict=True)]
        watch.stamp(kind.key)
    return Learned(list(parts), training, signals, np.concatenate(held_out))


def seen_scores(
    signals: list[Signal], normal: Normal, parts: list[Array], config: VACEConfig, held_out: Array
) -> Array:
    """Scores (2, n) of the last training rows, final and provisional."""
    if config.reproduction.over_the_set:  # they have no scores while rows come
        return np.stack([held_out, held_out])
    last: list[Array] = []
    left = MOST_SEEN
    for part in reversed(parts):
        if left >= config.length:
            last.insert(0, part[-left:])
            left -= len(last[0])
    found = scores_of(signals, normal, last, config.length)
    found = found[:, np.isfinite(found).all(axis=0)]  # the first rows of a stretch have none yet
    return found if found.shape[1] > 1 else np.stack([held_out, held_out])


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
