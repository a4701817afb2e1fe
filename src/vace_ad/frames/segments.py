"""Segments: rows as they arrive, cut into complete runs, in one place.

A cell is missing where it is not finite or beyond ±1e100. Gaps of up to `max_gap` rows in a channel
are interpolated; cells of longer ones are rebuilt from the channels that are there. Where too many
channels are missing, or time jumps, a run ends.

Runs of rows above a threshold are joined, with a minimum length and a cooldown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError

Array = NDArray[np.float64]
Rebuild = Callable[[Array, int], Array]  # rows with NaN, number of the first -> complete rows

LARGEST = 1e100  # larger magnitudes would overflow when squared, so they count as missing


class Piece(NamedTuple):
    """What comes next: complete rows, rows without a score, or a cut between two rows."""

    rows: Array | None  # (n, n_channels)
    n: int
    off: bool = False  # whether rows were left out as `off`


CUT = Piece(None, 0)


def missing_cells(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells hold no measurement, (n_rows, n_channels)."""
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:  # cannot hold LARGEST
        return np.asarray(~np.isfinite(values))
    return np.asarray(~(np.abs(values) <= LARGEST))  # NaN compares false


def _complete(rows: Array) -> bool:
    """Whether no cell is missing."""
    return bool(np.abs(rows).max(initial=0) <= LARGEST)  # NaN compares false


def run_edges(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The half-open ranges [start, end) where `mask` is true, shape (n_runs, 2)."""
    padded = np.concatenate([[False], mask, [False]])
    return np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)


class Segments:
    """Cuts a stream of rows; the same pieces whatever the chunks.

    A row is held back while it is not known how long its gap will be: at most `max_gap` rows.
    """

    def __init__(
        self, n_channels: int, max_gap: int, max_missing: float, rebuild: Rebuild | None
    ) -> None:
        self._max_gap, self._max_missing, self._rebuild = max_gap, max_missing, rebuild
        self._begin(n_channels)
        self._n = 0  # rows decided so far

    def _begin(self, n_channels: int) -> None:
        self._given = np.empty((0, n_channels))  # the last rows given out, as they came
        self._held = np.empty((0, n_channels))

    @property
    def n_held(self) -> int:
        """Rows that are not decided yet."""
        return len(self._held)

    def waiting(
        self, rows: Array, cuts: Sequence[int], off: NDArray[np.bool_]
    ) -> NDArray[np.intp] | None:
        """How many of the last rows were not decided when each of these came, (n,).

        They lay in a gap that was still short. None where no cell is missing. To be asked before
        the rows are added, with the same arguments.
        """
        if _complete(rows):
            return None
        missing = missing_cells(np.concatenate([self._given, self._held, rows]))
        before = len(missing) - len(rows)
        inner = {before + cut for cut in (*cuts, *run_edges(off).ravel().tolist())}
        open_rows = np.zeros(missing.shape, np.intp)  # length of the gap each cell ends, so far
        for a, b in pairwise(sorted({0, *inner, len(missing)})):
            place = np.arange(1, b - a + 1)[:, None]
            last = np.maximum.accumulate(np.where(missing[a:b], 0, place), axis=0)
            open_rows[a:b] = place - last
        short = np.where(open_rows <= self._max_gap, open_rows, 0)[before:].max(axis=1)
        return np.asarray(np.where(off, 0, short))

    def add(
        self, rows: Array, cuts: Sequence[int] = (), off: NDArray[np.bool_] | None = None
    ) -> list[Piece]:
        """The pieces that are now decided; `cuts` are rows before which time jumped.

        Rows that are `off`, (n,), get no score, whatever they hold.
        """
        dropped = np.zeros((0, 2), np.intp) if off is None else run_edges(off)
        inside = set(dropped[:, 0].tolist())
        pieces: list[Piece] = []
        start = 0
        for cut in sorted({*cuts, *dropped.ravel().tolist()} - {len(rows)}):
            pieces += self._stretch_end(rows[start:cut], start in inside, cut in inside)
            start = cut
        if start in inside:
            return pieces + self._stretch_end(rows[start:], True)
        return pieces + self._decide(rows[start:], last=False)

    def _stretch_end(self, rows: Array, dropped: bool, then: bool = False) -> list[Piece]:
        """The last rows of a stretch, or rows between two stretches; then a new one begins.

        `then` says whether rows that are off follow, which are a cut themselves.
        """
        pieces = self._decide(rows[:0] if dropped else rows, last=True)
        self._begin(rows.shape[1])
        self._n += len(rows) if dropped else 0
        if dropped:
            return [*pieces, Piece(None, len(rows), True)]
        return pieces if then else [*pieces, CUT]

    def finish(self) -> list[Piece]:
        """The rows still held, at the end of the stream."""
        return self._decide(self._held[:0], last=True)

    def _decide(self, rows: Array, last: bool) -> list[Piece]:
        if not len(self._held) and _complete(rows):
            self._given = np.concatenate([self._given, rows[-self._max_gap - 1 :]])[
                -self._max_gap - 1 :
            ]
            self._n += len(rows)
            return [Piece(rows, len(rows))] if len(rows) else []
        rows = np.where(np.abs(rows) <= LARGEST, rows, np.nan)
        window = np.concatenate([self._given, self._held, rows])
        start, missing = len(self._given), np.isnan(window)
        end = len(window) if last else self._decided(missing)
        filled = window.copy()
        for channel in np.flatnonzero(missing.any(axis=0)):
            interpolate(filled[:, channel], missing[:, channel], self._max_gap)
        # One row more than a short gap: so a long one is still seen to be long.
        self._given, self._held = window[:end][-self._max_gap - 1 :], window[end:]
        return list(self._pieces(filled[start:end]))

    def _decided(self, missing: NDArray[np.bool_]) -> int:
        """Rows before the first gap that may still turn out short."""
        known = np.pad(~missing[::-1], ((0, 1), (0, 0)), constant_values=True)
        open_rows = known.argmax(axis=0)  # length of the gap a channel ends in, (n_channels,)
        return len(missing) - int(open_rows[open_rows <= self._max_gap].max(initial=0))

    def _pieces(self, rows: Array) -> Iterator[Piece]:
        """Complete rows and rows without a score, in order."""
        missing = np.isnan(rows)
        if self._rebuild is None:
            scored = ~missing.any(axis=1)
        else:
            scored = missing.mean(axis=1) <= self._max_missing
            scored &= ~missing.all(axis=1)
        at = 0
        for a, b in run_edges(np.asarray(scored)).tolist():
            if a > at:
                yield Piece(None, a - at)
            part = rows[a:b]
            if self._rebuild is not None and missing[a:b].any():
                part = self._rebuild(part, self._n + a)
            yield Piece(part, b - a)
            at = b
        if at < len(rows):
            yield Piece(None, len(rows) - at)
        self._n += len(rows)

    def state(self) -> dict[str, NDArray[Any]]:
        """Rows that are held or still needed."""
        return {"given": self._given, "held": self._held, "n": np.array([self._n])}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state."""
        self._given, self._held, self._n = state["given"], state["held"], int(state["n"][0])


def interpolate(column: Array, missing: NDArray[np.bool_], max_gap: int) -> None:
    """Fill the short gaps of one channel, in place; at an end they take the nearest value."""
    known = np.flatnonzero(~missing)
    if len(known) == 0:
        return
    edges = run_edges(missing)
    short = np.zeros(len(column), dtype=bool)
    for a, b in edges[edges[:, 1] - edges[:, 0] <= max_gap].tolist():
        short[a:b] = True
    column[short] = np.interp(np.flatnonzero(short), known, column[known])


@dataclass(frozen=True)
class Rules:
    """What makes one event.

    Attributes
    ----------
    join
        Events that are at most this many rows apart are merged.
    min_length
        Events with fewer rows are dropped.
    cooldown
        Events that begin within this many rows after the end of another are dropped.
    """

    join: int = 0
    min_length: int = 1
    cooldown: int = 0

    def __post_init__(self) -> None:
        for name, least in (("join", 0), ("min_length", 1), ("cooldown", 0)):
            value = getattr(self, name)
            if value < least:
                raise ConfigError(f"{name}={value!r}: must be at least {least} rows")


def runs_above(scores: NDArray[np.float64], threshold: float, rules: Rules) -> NDArray[np.intp]:
    """The half-open row ranges [start, end) of events, shape (n_events, 2).

    NaN is never above. The rules apply in the order they are listed in.
    """
    above = np.flatnonzero(scores > threshold)
    if len(above) == 0:
        return np.empty((0, 2), dtype=np.intp)
    breaks = np.flatnonzero(np.diff(above) > rules.join + 1)
    starts = above[np.concatenate([[0], breaks + 1])]
    ends = above[np.concatenate([breaks, [len(above) - 1]])] + 1
    runs: NDArray[np.intp] = np.stack([starts, ends], axis=1)
    runs = runs[runs[:, 1] - runs[:, 0] >= rules.min_length]
    if rules.cooldown == 0:
        return runs
    kept, quiet_until = [], -1
    for start, end in runs.tolist():
        if start >= quiet_until:
            kept.append((start, end))
            quiet_until = end + rules.cooldown
    return np.array(kept, dtype=np.intp).reshape(-1, 2)
