"""The last rows of an alarm stream, as people ask for them: their times, values and evidence.

Rows are counted as the stream has them; `number` gives the user's own number, without the rows
that were put in for missing ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import Reading
from vace_ad.alarms.evidence import UNIT, Nats
from vace_ad.alarms.tracked import KEPT
from vace_ad.signals.row_buffer import RowBuffer

Array = NDArray[np.float64]

LONGEST = 4_096  # rows back to which it is known where rows were put in
READ = 6  # suspects whose values are reported


class Latest(NamedTuple):
    """The last rows of a stream as people look at them."""

    times: NDArray[np.datetime64]  # (n,)
    evidence: Array  # (n,), over its limit: above 1 is an alarm; NaN: none
    values: Array  # (n, n_channels)
    lower: Array  # (n, n_channels), of what was expected
    upper: Array


class RecentRows:
    """The last KEPT rows that were decided."""

    def __init__(self, channels: Sequence[str]) -> None:
        self._channels = channels
        self.n = 0  # rows decided, those that were put in for missing ones included
        self.at = -1  # the one that is spoken of: what came after it is not known
        self.missing = 0  # rows that were put in
        self._offsets: list[tuple[int, int]] = [(0, 0)]  # (row, rows put in before it)
        self._times = RowBuffer(1, "datetime64[ns]")
        self._evidence = RowBuffer(2)  # nats of the most surprising cell; evidence over its limit
        self._rows = RowBuffer(len(channels))  # as they came
        self._nats = RowBuffer(len(channels), "int32")  # of their cells, in units of 1 / UNIT
        # How far below each value the expected range begins, and how far above it ends.
        self._range = RowBuffer(2 * len(channels), "float32")

    def put_in(self, numbers: Sequence[int]) -> None:
        """Rows that stand for missing ones, by the number of rows up to each."""
        for number in numbers:
            self.missing += 1
            self._offsets.append((number, self.missing))

    def add(
        self,
        rows: Array,
        times: NDArray[np.datetime64],
        evidence: Array,
        within: Array,
        nats: Nats,
    ) -> None:
        """Rows (n, n_channels) that are decided, with all that is kept of them."""
        for buffer, new in (
            (self._times, times[:, None]),
            (self._evidence, evidence),
            (self._rows, rows),
            (self._nats, nats),
            (self._range, within),
        ):
            buffer.keep(KEPT)
            buffer.add(new)
        self.n += len(rows)
        old = [one for one in self._offsets if one[0] <= self.n - 2 * LONGEST]
        self._offsets = [*old[-1:], *self._offsets[len(old) :]]

    def number(self, row: int) -> int:
        """The user's number of a row."""
        for since, before in reversed(self._offsets):
            if row >= since:
                return row - before
        return row

    def time(self, row: int) -> np.datetime64 | None:
        """The time of a row; None where it has none or is too long ago."""
        kept, first = self._up_to(self._times)
        if not first <= row < first + len(kept) or np.isnat(kept[row - first, 0]):
            return None
        stamp: np.datetime64 = kept[row - first, 0]
        return stamp

    def values(self) -> tuple[Array, int]:
        """The rows up to the one that is spoken of, and the number of the first."""
        return self._up_to(self._rows)

    def nats(self) -> Array:
        """The nats of their cells."""
        return np.asarray(self._up_to(self._nats)[0] / UNIT)

    def peak(self, start: int, end: int) -> tuple[int, float]:
        """The most surprising of rows [start, end) and its nats, as far as they are kept."""
        kept, first = self._up_to(self._evidence)
        low = max(start, first)
        inside = kept[low - first : max(end - first, 0), 0]
        if not len(inside) or np.isnan(inside).all():
            return start, float("nan")
        at = int(np.nanargmax(inside))
        return low + at, float(inside[at])

    def readings(self, peak: int, shares: Sequence[tuple[str, float]]) -> tuple[Reading, ...]:
        """The suspects at the peak, against what was expected; none where it is too long ago."""
        kept, first = self.values()
        if not first <= peak < first + len(kept):
            return ()
        values = kept[peak - first]
        gaps = self._up_to(self._range)[0][peak - first].astype(np.float64)
        below, above = np.split(gaps, 2)
        found = []
        for name, _ in shares[:READ]:
            i = self._channels.index(name)
            low, high = values[i] - below[i], values[i] + above[i]
            found.append(Reading(name, float(values[i]), float(low), float(high)))
        return tuple(found)

    def latest(self, n: int) -> Latest:
        """The last n rows."""
        values, gaps = self._rows.last(n).copy(), self._range.last(n).astype(np.float64)
        below, above = np.split(gaps, 2, axis=1)
        times, evidence = self._times.last(n)[:, 0].copy(), self._evidence.last(n)[:, 1].copy()
        return Latest(times, evidence, values, values - below, values + above)

    def _up_to(self, buffer: RowBuffer) -> tuple[Any, int]:
        """The last KEPT rows up to the one that is spoken of, and the number of the first."""
        later = self.n - 1 - self.at
        kept = buffer.last(KEPT + later)
        kept = kept[: len(kept) - later]
        return kept, self.at + 1 - len(kept)

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        return {
            "n": np.array([self.n, self.missing], np.int64),
            "offsets": np.array(self._offsets, np.int64),
            "times": self._times.last(KEPT)[:, 0].copy().view(np.int64),
            "evidence": self._evidence.last(KEPT).copy(),
            "rows": self._rows.last(KEPT).copy(),
            "nats": self._nats.last(KEPT).copy(),
            "range": self._range.last(KEPT).copy(),
        }

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        rows, within, evidence = state["rows"], state["range"], state["evidence"]
        d = len(self._channels)
        if rows.shape[1:] != (d,) or within.shape != (len(rows), 2 * d):
            raise ValueError(f"its last rows have the shapes {rows.shape} and {within.shape}")
        nats = state["nats"]
        if nats.shape != rows.shape or nats.dtype.kind != "i":
            raise ValueError(f"its nats have the shape {nats.shape}")
        if evidence.shape != (len(rows), 2):
            raise ValueError(f"its evidence has the shape {evidence.shape}")
        self.n, self.missing = (int(x) for x in state["n"])
        self._offsets = [(int(a), int(b)) for a, b in state["offsets"]]
        self._rows.refill(rows.copy())
        self._nats.refill(nats.astype(np.int32))
        self._range.refill(within.astype(np.float32))
        self._times.refill(state["times"].view("datetime64[ns]")[:, None].copy())
        self._evidence.refill(evidence.copy())
