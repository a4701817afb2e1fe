"""A buffer of rows, synchronised lines, and means over the windows that cover a row.

Each class gives the same bits whatever the chunks, and its state can be kept as arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


TOGETHER = 8  # rows in one matrix product
SPARE = 32  # rows that a buffer has room for beyond those that wait


def blocked_matmul(rows: Array, matrix: Array) -> Array:
    """`rows @ matrix`, (n, k), always so many rows at a time.

    In one product for all, a row's last bits would depend on its company: libraries compute the
    edges of a matrix by other code than its middle.
    """
    n = len(rows)
    padded = np.zeros((-(-n // TOGETHER) * TOGETHER, rows.shape[1]))
    padded[:n] = rows
    found = np.matmul(padded.reshape(-1, TOGETHER, rows.shape[1]), matrix)
    return np.asarray(found.reshape(-1, matrix.shape[1])[:n])


def ordered_sum(lines: Iterable[Array]) -> Array:
    """The sum of lines (n,), one after the other: NumPy's own order depends on their length."""
    stacked = lines if isinstance(lines, np.ndarray) else np.array(list(lines))
    return np.asarray(np.add.accumulate(stacked)[-1])


class RowBuffer:
    """Rows that wait, in a place with room for more: a row that comes or goes moves no other.

    What is given out are views, which hold until rows are added.
    """

    def __init__(self, width: int, kind: str = "float64") -> None:
        self._space = np.empty((0, width), kind)
        self._start = self._end = 0  # of the rows that wait
        self._skip = 0  # rows still to come that nobody wants

    def __len__(self) -> int:
        return self._end - self._start

    def add(self, rows: NDArray[Any]) -> None:
        """Put rows at the end."""
        if self._skip:
            wanted = rows[self._skip :]
            self._skip -= len(rows) - len(wanted)
            rows = wanted
        end = self._end + len(rows)
        if end > len(self._space):
            self._move(len(rows))
            end = self._end + len(rows)
        self._space[self._end : end] = rows
        self._end = end

    @property
    def all(self) -> NDArray[Any]:
        """All rows that wait."""
        return self._space[self._start : self._end]

    def first(self, n: int) -> NDArray[Any]:
        """The first n rows, which stay."""
        return self._space[self._start : min(self._start + n, self._end)]

    def last(self, n: int) -> NDArray[Any]:
        """The last n rows, which stay."""
        return self._space[max(self._start, self._end - n) : self._end]

    def drop(self, n: int) -> None:
        """Forget the first n rows, also those that have not come yet."""
        self._start += n
        if self._start > self._end:
            self._skip += self._start - self._end
            self._start = self._end
        if len(self._space) > 8 * (self._end - self._start + SPARE):  # after many rows at once
            self.refill(self.all.copy())

    def keep(self, n: int) -> None:
        """Forget all but the last n rows."""
        more = self._end - self._start - n
        if more > 0:
            self.drop(more)

    def refill(self, rows: NDArray[Any]) -> None:
        """These rows, which become the buffer's own, instead of those that wait."""
        self._space, self._start, self._end = rows, 0, len(rows)

    def _move(self, more: int) -> None:
        """Move to where there is room for so many more rows, and some to spare."""
        rows, n = self.all, len(self)
        room = n + more + (n + more) // 4 + SPARE
        if room > len(self._space):
            self._space = np.empty((room, rows.shape[1]), rows.dtype)
        self._space[:n] = rows
        self._start, self._end = 0, n

    def state(self) -> dict[str, NDArray[Any]]:
        """What waits."""
        return {"rows": self.all.copy(), "skip": np.array([self._skip])}

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        rows, width = state["rows"], self._space.shape[1]
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f"got rows of shape {rows.shape}; expected {width} columns")
        self.refill(rows.copy())
        self._skip = int(state["skip"][0])


class InStep:
    """Lines that grow at different paces, given out as far as all of them reach."""

    def __init__(self, n: int) -> None:
        self._waiting: list[list[Array]] = [[] for _ in range(n)]
        self._lengths = [0] * n
        self._none: list[Array] = []  # of each, where they have no common length

    def add(self, parts: Sequence[Array]) -> list[Array]:
        """The common length (..., m) of each, after adding (..., k) to each."""
        for i, part in enumerate(parts):
            length = part.shape[-1]
            if length or not self._waiting[i]:
                self._waiting[i].append(part)
                self._lengths[i] += length
        n = min(self._lengths)
        if n == 0:
            self._none = self._none or [waiting[0][..., :0] for waiting in self._waiting]
            return self._none
        whole = [np.concatenate(waiting, axis=-1) for waiting in self._waiting]
        self._waiting = [[line[..., n:]] for line in whole]
        self._lengths = [length - n for length in self._lengths]
        return [line[..., :n] for line in whole]

    def state(self) -> dict[str, NDArray[Any]]:
        """What waits."""
        return {
            str(i): np.concatenate(waiting, axis=-1)
            for i, waiting in enumerate(self._waiting)
            if waiting
        }

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        self._waiting = [
            [state[str(i)]] if str(i) in state else [] for i in range(len(self._waiting))
        ]
        self._lengths = [sum(part.shape[-1] for part in waiting) for waiting in self._waiting]


class WindowMeans:
    """A row's value is the mean over the windows that cover it, one line for each signal.

    Windows start every `stride` rows; the values of those between lie on straight lines.
    """

    def __init__(self, window: int, stride: int, n_lines: int) -> None:
        self._window, self._stride = window, stride
        self._last = np.empty((n_lines, 0))  # value of the grid's last window, once there is one
        self._recent = RowBuffer(n_lines)  # of the windows before the next row, and the latest
        self._recent.refill(np.zeros((window - 1, n_lines)))
        self.n_given = 0  # rows given so far; the row, and the window, that comes next

    def add(self, values: Array) -> Array:
        """The rows (n_lines, m) that the grid's next windows, (n_lines, k), complete."""
        every = values
        if self._stride > 1:
            given = self._last.shape[1]  # the grid's last window has been counted before
            grid = np.concatenate([self._last, values], axis=1)
            every = _between(grid, self._stride)[:, given:]
        if values.shape[1]:
            self._last = values[:, -1:]
        return self._rows(every, self.n_given + every.shape[1])

    def finish(self, n_rows: int) -> Array:
        """The rows that are left of a stretch of `n_rows`."""
        n_windows = n_rows - self._window + 1
        left = n_windows - self.n_given
        if not 0 <= left < self._window + self._stride:  # of a state that was forged
            raise ValueError(f"{left} windows are left of {n_windows}")
        rest = np.repeat(self._last, left, axis=1)
        nothing = np.zeros((len(rest), self._window - 1))
        return self._rows(np.concatenate([rest, nothing], axis=1), n_windows)

    def latest_sums(self, n: int, length: int) -> Array:
        """The sums (n_lines, n) of `length` values up to each of the n that were added last."""
        return window_sums(self._recent.last(n + length - 1).T, length)

    def _rows(self, every: Array, n_windows: int) -> Array:
        """The rows that the values (n_lines, m) of the next windows complete."""
        recent, window = self._recent, self._window
        recent.keep(window - 1)
        recent.add(every.T)
        sums = window_sums(recent.all.T, window)
        first, end = self.n_given, self.n_given + every.shape[1]
        self.n_given = end
        if first >= window - 1 and end <= n_windows:  # away from the stretch's ends
            sums /= window
            return sums
        rows = np.arange(first, end)
        count = np.minimum(rows, n_windows - 1) - np.maximum(rows - window + 1, 0) + 1
        return np.asarray(sums / count)

    def state(self) -> dict[str, NDArray[Any]]:
        """The last windows."""
        recent = self._recent.last(self._window - 1).T.copy()
        return {"last": self._last, "recent": recent, "given": np.array([self.n_given])}

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        self._last = state["last"]
        self._recent.refill(state["recent"].T.copy())
        self.n_given = int(state["given"][0])


def repeated(held: Array, n: int) -> Array:
    """A value (n_lines, 1) that n rows hold, (n_lines, n)."""
    return held if n == 1 else np.repeat(held, n, axis=1)


def hold_last(before: Array, held: Array, last: int, step: int, a: int, b: int) -> Array:
    """What rows a … b−1 hold, (n_lines, b − a): the value of the last window that had ended.

    `held` (n_lines, k) are the values of windows that end every `step` rows, the latest at row
    `last`; rows before all of them still hold `before` (n_lines, 1).
    """
    if b - a == 1:  # a live row
        return held[:, -1:] if last == a else before
    ends = last - step * np.arange(held.shape[1] - 1, -1, -1)
    place = np.searchsorted(ends, np.arange(a, b), side="right")
    return np.asarray(np.concatenate([before, held], axis=1)[:, place])


def window_sums(lines: Array, window: int) -> Array:
    """The sum of every `window` values in a row, (n_lines, n − window + 1), of lines (n_lines, n).

    Each sum stands on its own, so its bits do not depend on the company. The view of all windows
    is made by hand: `sliding_window_view` takes longer than the sum of a live row.
    """
    if lines.shape[1] == window:  # a live row
        return np.array([[line.sum()] for line in lines])
    lines = np.ascontiguousarray(lines)
    each = lines.strides[1]
    shape = (lines.shape[1] - window + 1, window)
    found = np.empty((len(lines), shape[0]))
    for i, line in enumerate(lines):
        np.ndarray(shape, lines.dtype, line, strides=(each, each)).sum(axis=1, out=found[i])
    return found


def _between(grid: Array, stride: int) -> Array:
    """Values of every window from those on the grid (n_lines, k), linearly in between."""
    if stride == 1:
        return grid
    left = grid[:, :-1, None]
    slope = (grid[:, 1:, None] - left) / stride
    filled = slope * np.arange(stride) + left  # (n_lines, k − 1, stride)
    return np.concatenate([filled.reshape(len(grid), -1), grid[:, -1:]], axis=1)


def patch_means_to_points(
    scores: Array,  # (n_patches,), of every patch
    patch_length: int,
) -> Array:
    """A point's score is the mean of the scores of all patches that cover it.

    Each mean is summed on its own rather than from a running total, so that it does not depend
    on what lies before.
    """
    n = len(scores)
    pad = np.zeros(patch_length - 1)
    covering = sliding_window_view(np.concatenate([pad, scores, pad]), patch_length)
    rows = np.arange(n + patch_length - 1)
    count = np.minimum(rows, n - 1) - np.maximum(rows - patch_length + 1, 0) + 1
    return np.asarray(covering.sum(axis=1) / count)  # (n_patches + P − 1,)


def fill_skipped(
    scores: Array,  # (n_grid,), of patches 0, stride, 2·stride, …
    stride: int,
    n_patches: int,
) -> Array:
    """Scores of every patch from those on the grid, linearly between neighbours.

    Patches after the last one on the grid take its score.
    """
    if stride == 1:
        return scores
    return np.interp(np.arange(n_patches), np.arange(len(scores)) * stride, scores)


def grid_to_rows(
    scores: Array,  # (n_grid,), of windows 0, stride, 2·stride, …
    stride: int,
    n_rows: int,
    length: int,
) -> Array:
    """Row scores (n_rows,) from those of windows of `length` rows on a grid."""
    return patch_means_to_points(fill_skipped(scores, stride, n_rows - length + 1), length)
