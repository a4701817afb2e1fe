"""All signals of the same rows: which there are, how they are fitted, their lines synchronised.

Other packages add kinds by entry points of the group `vace_ad.signals`; a detector that asks for
one by name (`extra_signals`) has it behind ours.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import pool
from vace_ad.errors import ConfigError
from vace_ad.frames.training_data import TrainingPart
from vace_ad.progress import Progress
from vace_ad.signals.baseline_model import FOLDS, Normal
from vace_ad.signals.distance import Distance
from vace_ad.signals.forecast import Forecast
from vace_ad.signals.protocol import Fitted, Signal, Training, prefixed, under
from vace_ad.signals.row_buffer import InStep, RowBuffer, ordered_sum
from vace_ad.signals.shape import Shape
from vace_ad.signals.spike import Spike
from vace_ad.signals.surge import Surge
from vace_ad.signals.window_signal import LevelScale, Relation

Array = NDArray[np.float64]
KINDS: tuple[type[Signal], ...] = (
    Shape,
    LevelScale,
    Spike,
    Relation,
    Forecast,
    Distance,
    Surge,
)
GROUP = "vace_ad.signals"  # entry points of other packages
SIDE_BY_SIDE = 512  # rows from which on signals are computed by several threads
SLAB = 4096  # rows of a long stretch that are scored at a time: few enough to stay in cache
LEAD = 10  # lengths of rows by which a stream of held-out rows begins earlier
PIECES = 16  # that scores of a part are thinned to


class Together:
    """All evidence of a stream of rows that has no gaps in between but those it is told of."""

    def __init__(self, signals: Sequence[Signal], normal: Normal, least: int, live: bool) -> None:
        """A stretch needs `least` rows; `live` asks for provisional lines too."""
        self._normal, self._live, self._least = normal, live, least
        self._keys = [signal.key for signal in signals]
        self._evidence = [signal.begin(live=live) for signal in signals]
        self.n_lines = sum(each.n_lines for each in self._evidence)
        self._in_step = InStep(len(self._evidence))
        self._nothing = self.nothing(0)
        self._begin()

    def _begin(self) -> None:
        self._n = 0  # rows of the present stretch
        self._first = RowBuffer(self._normal.n_channels)  # of a stretch shorter than a patch

    def extend(self, rows: Array) -> tuple[Array, Array]:
        """Lines (n_lines, m) now complete, and the provisional ones of these rows."""
        before, early = self._n, 0
        self._n += len(rows)
        if before < self._least:
            self._first.add(rows)
            if self._n < self._least:
                return self._nothing, self.nothing(len(rows))
            early, rows = before, self._first.first(self._n)
            self._first = RowBuffer(rows.shape[1])
        done = self._joined(self._each(rows))
        if not self._live:
            return done, self._nothing
        now = np.concatenate([each.now for each in self._evidence])[:, early:]
        now[:, : max(self._least - 1 - before, 0)] = np.nan  # in any chunks
        return done, now

    def nothing(self, n: int) -> Array:
        """The lines (n_lines, n) of rows that have no evidence."""
        return np.full((self.n_lines, n), np.nan)

    def _each(self, rows: Array) -> list[Array]:
        """What each signal gives; side by side where there is enough to do."""
        scaled = self._normal.scaled(rows)  # once for all
        if len(rows) < SIDE_BY_SIDE:
            return [each.add(rows, scaled) for each in self._evidence]
        return list(pool().map(lambda each: each.add(rows, scaled), self._evidence))

    def cut(self, skipped: int = 0) -> Array:
        """End the stretch, if there is one; then rows without evidence follow."""
        done = [self._nothing]
        if self._n >= self._least:
            done.append(self._joined([each.end() for each in self._evidence]))
        else:
            skipped += self._n  # too short a stretch has no evidence
        if skipped:
            done.append(self._joined([each.skip(skipped) for each in self._evidence]))
        self._begin()
        return np.concatenate(done, axis=1)

    def finish(self) -> Array:
        """The lines that are left when the stream ends."""
        last = self.cut()
        rest = self._joined([each.finish() for each in self._evidence])
        return np.concatenate([last, rest], axis=1)

    def _joined(self, parts: list[Array]) -> Array:
        found = self._in_step.add(parts)
        return np.concatenate(found) if found[0].shape[1] else self._nothing

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        state = {"n": np.array([self._n])}
        state |= prefixed("first", self._first.state()) | prefixed("step", self._in_step.state())
        for key, each in zip(self._keys, self._evidence, strict=True):
            state |= prefixed(key, each.state())
        return state

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        self._n = int(state["n"][0])
        self._first.resume(under("first", state))
        self._in_step.resume(under("step", state))
        for key, each in zip(self._keys, self._evidence, strict=True):
            each.resume(under(key, state))


def scores_of(
    signals: Sequence[Signal],
    normal: Normal,
    parts: Sequence[Array],  # complete stretches, (n_rows, n_channels) each
    least: int,
) -> Array:
    """Scores of stretches that follow each other as a stream gives them, (n,)."""
    together = Together(signals, normal, least, live=False)
    found: list[Array] = []
    for part in parts:
        slabs = [together.extend(part[at : at + SLAB])[0] for at in range(0, len(part), SLAB)]
        found += [*slabs, together.cut()]
    return ordered_sum(np.concatenate([*found, together.finish()], axis=1))


class FitResult(NamedTuple):
    """What training rows gave: signals, and scores of rows by signals that did not see them."""

    parts: list[TrainingPart]  # that were long enough
    training: Training
    signals: list[Signal]
    held: Array  # (n,)


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
    return FitResult(list(parts), training, signals, np.concatenate(held))


def held_out(
    fitted: Sequence[Fitted], normal: Normal, parts: Sequence[Array], config: VACEConfig
) -> list[Array]:
    """Scores (n,) of the rows of each part, by streams of signals that did not learn from them.

    Each block is a stream of its own, which begins some rows before it, because the first rows of a
    stream are its own baseline, and ends some after it. Of those rows no score is kept.
    """
    length = config.length
    lead = length * (LEAD if config.amplitude else 1)  # shape alone has no baseline
    found = [np.empty(len(part)) for part in parts]
    first = np.cumsum([0, *map(len, parts)])
    for k, block in enumerate(np.array_split(np.arange(first[-1]), FOLDS)):
        inside = [np.clip([block[0] - a, block[-1] + 1 - a], 0, b - a) for a, b in pairwise(first)]
        held = [(i, a, b) for i, (a, b) in enumerate(inside) if a < b]
        wide = [parts[i][max(a - lead, 0) : b + length] for i, a, b in held]
        scores = scores_of([each.unseen(k) for each in fitted], normal, wide, length)
        for (i, a, b), rows in zip(held, wide, strict=True):
            before = min(a, lead)
            found[i][a:b] = scores[before : before + b - a]
            scores = scores[len(rows) :]
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


def kinds(extra: Sequence[str] = ()) -> tuple[type[Signal], ...]:
    """Ours, and those of installed packages with these names."""
    return (*KINDS, *map(_installed, extra))


def _installed(name: str) -> type[Signal]:
    for point in entry_points(group=GROUP, name=name):
        found: type[Signal] = point.load()
        return found
    there = ", ".join(sorted(entry_points(group=GROUP).names)) or "none"
    raise ConfigError(
        f"extra_signals names {name!r}, which no installed package adds; install its package, or "
        f"leave it out (installed: {there})"
    )
