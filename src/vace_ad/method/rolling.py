"""Rows as they come: a buffer, short gaps filled, and means over the windows that cover a row.

Each class does for a series in chunks what a function does for a whole table, with the same bits
whatever the chunks: `GapFiller` what `vace_ad.frames.gaps.stretches` does, `WindowMeans` what
`fill_skipped` and `patch_means_to_points` do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.frames.gaps import LARGEST, interpolate
from vace_ad.method.patches import fill_skipped

Array = NDArray[np.float64]


class RowBuffer:
    """Rows that wait; adding many small chunks costs no more than one large one."""

    def __init__(self) -> None:
        self._chunks: list[Array] = []
        self._count = 0
        self._skip = 0  # rows still to come that nobody wants

    def __len__(self) -> int:
        return self._count

    def add(self, rows: Array) -> None:
        """Put rows at the end."""
        wanted = rows[self._skip :]
        self._skip -= len(rows) - len(wanted)
        self._chunks.append(wanted)
        self._count += len(wanted)

    def first(self, n: int) -> Array:
        """The first n rows, which stay."""
        if len(self._chunks) > 1:
            self._chunks = [np.concatenate(self._chunks)]
        return self._chunks[0][:n]

    def drop(self, n: int) -> None:
        """Forget the first n rows, also those that have not come yet."""
        kept = self.first(self._count)[n:].copy()  # a copy, so that the rest can be freed
        self._skip += max(0, n - self._count)
        self._chunks, self._count = [kept], len(kept)


class InStep:
    """Lines that grow at different paces, given out as far as all of them reach."""

    def __init__(self, n: int) -> None:
        self._waiting: list[list[Array]] = [[] for _ in range(n)]

    def add(self, parts: Sequence[Array]) -> list[Array]:
        """The common length (..., m) of each, after adding (..., k) to each."""
        for waiting, part in zip(self._waiting, parts, strict=True):
            waiting.append(part)
        lengths = [sum(part.shape[-1] for part in waiting) for waiting in self._waiting]
        n = min(lengths)
        if n == 0:
            return [waiting[0][..., :0] for waiting in self._waiting]
        whole = [np.concatenate(waiting, axis=-1) for waiting in self._waiting]
        self._waiting = [[line[..., n:]] for line in whole]
        return [line[..., :n] for line in whole]


class GapFiller:
    """Interpolates gaps of up to `max_gap` rows; rows of longer ones stay NaN.

    A row is held back while it is not known how long its gap will be: at most `max_gap` rows.
    """

    def __init__(self, max_gap: int, n_channels: int) -> None:
        self._max_gap = max_gap
        self._given = np.empty((0, n_channels))  # the last rows given out, as they came
        self._held = np.empty((0, n_channels))

    def add(self, rows: Array) -> Array:
        """The rows (m, n_channels) that are now decided, filled."""
        return self._decide(rows, last=False)

    def finish(self) -> Array:
        """The rows still held, at the end of the table."""
        return self._decide(self._held[:0], last=True)

    def _decide(self, rows: Array, last: bool) -> Array:
        rows = np.where(np.abs(rows) <= LARGEST, rows, np.nan)  # NaN compares false
        window = np.concatenate([self._given, self._held, rows])
        start, missing = len(self._given), np.isnan(window)
        end = len(window) if last else self._decided(missing)
        filled = window.copy()
        for channel in np.flatnonzero(missing.any(axis=0)):
            interpolate(filled[:, channel], missing[:, channel], self._max_gap)
        # One row more than a short gap: so a long one is still seen to be long.
        self._given, self._held = window[:end][-self._max_gap - 1 :], window[end:]
        return filled[start:end]

    def _decided(self, missing: NDArray[np.bool_]) -> int:
        """Rows before the first gap that may still turn out short."""
        known = np.pad(~missing[::-1], ((0, 1), (0, 0)), constant_values=True)
        open_rows = known.argmax(axis=0)  # length of the gap a channel ends in, (n_channels,)
        return len(missing) - int(open_rows[open_rows <= self._max_gap].max(initial=0))


class WindowMeans:
    """A row's value is the mean over the windows that cover it, one line for each signal.

    Windows start every `stride` rows; the values of those between lie on straight lines.
    """

    def __init__(self, window: int, stride: int, n_lines: int) -> None:
        self._window, self._stride = window, stride
        self._last = np.empty((n_lines, 0))  # value of the grid's last window, once there is one
        self._recent = np.zeros((n_lines, window - 1))  # of the windows before the next row
        self._next = 0  # the row, and the window, that comes next

    def add(self, values: Array) -> Array:
        """The rows (n_lines, m) that the grid's next windows, (n_lines, k), complete."""
        grid = np.concatenate([self._last, values], axis=1)
        given = self._last.shape[1]  # the grid's last window has been counted before
        n = (grid.shape[1] - 1) * self._stride + 1
        every = np.stack([fill_skipped(line, self._stride, n) for line in grid])[:, given:]
        self._last = grid[:, -1:]
        return self._rows(every, self._next + every.shape[1])

    def finish(self, n_rows: int) -> Array:
        """The rows that are left of a stretch of `n_rows`."""
        n_windows = n_rows - self._window + 1
        rest = np.repeat(self._last, n_windows - self._next, axis=1)
        nothing = np.zeros((len(rest), self._window - 1))
        return self._rows(np.concatenate([rest, nothing], axis=1), n_windows)

    def _rows(self, every: Array, n_windows: int) -> Array:
        """The rows that the values (n_lines, m) of the next windows complete."""
        padded = np.concatenate([self._recent, every], axis=1)
        covering = sliding_window_view(padded, self._window, axis=1)  # (n_lines, m, window)
        rows = np.arange(self._next, self._next + every.shape[1])
        count = np.minimum(rows, n_windows - 1) - np.maximum(rows - self._window + 1, 0) + 1
        self._recent = padded[:, padded.shape[1] - self._window + 1 :]
        self._next += every.shape[1]
        return np.stack([line.sum(axis=1) / count for line in covering])
