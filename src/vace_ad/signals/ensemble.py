"""All signals of the same rows, synchronised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.engine.trajectory import pool
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.protocol import Signal, prefixed, under
from vace_ad.signals.row_buffer import InStep, RowBuffer, ordered_sum

Array = NDArray[np.float64]
SIDE_BY_SIDE = 512  # rows from which on signals are computed by several threads


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
    live: bool,
) -> Array:
    """Scores of stretches that follow each other as a stream gives them, (2, n).

    First the final ones, then, of a live stream, those of each row at once; NaN otherwise.
    """
    together = Together(signals, normal, least, live=live)
    found: list[Array] = []
    now: list[Array] = []
    for part in parts:
        done, newest = together.extend(part)
        found += [done, together.cut()]
        now.append(ordered_sum(newest) if live else np.full(len(part), np.nan))
    final = ordered_sum(np.concatenate([*found, together.finish()], axis=1))
    return np.stack([final, np.concatenate(now)])
