"""Alignment: rows from single readings, which may be late, duplicate or out of order.

Time is cut into steps. A row closes when the watermark, the newest time seen of its entity less
the lateness, has passed its step; until then readings are put in place, whatever their order.
Nothing is dropped without being counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import fsum
from typing import Any, NamedTuple

from vace_ad.live.records import Record
from vace_ad.live.sections import Align

Readings = list[tuple[int, float]]  # (time, value) of a channel within one step


class Row(NamedTuple):
    """One row of an entity: the start of its step, and the cells that are known."""

    time: int
    values: dict[str, float]
    read: tuple[str, ...] = ()  # channels that had a reading; the others are held


class Aligner:
    """The rows of one entity."""

    __slots__ = ("_open", "_rule", "_written", "last", "newest")

    def __init__(self, rule: Align) -> None:
        self._rule = rule
        self._open: dict[int, dict[str, Readings]] = {}  # by step, then channel
        self.newest: int | None = None  # the latest time that came
        self._written: int | None = None  # the step of the last row
        self.last: dict[str, tuple[int, float]] = {}  # newest reading of each channel, to be held

    def add(self, record: Record, counts: Counter[str], now: int | None = None) -> list[Row]:
        """Add a record; return the rows that it completes."""
        rule = self._rule
        if now is not None and record.time > now + rule.future:
            counts["future"] += len(record.values)
            return []
        key = record.time if rule.step is None else record.time // rule.step
        if key <= self._closed():
            again = rule.step is None and key == self._written
            counts["twice" if again else "late"] += len(record.values)
            return []
        cells = self._open.setdefault(key, {})
        n = 0
        for channel, value in record.values.items():
            if value != value:
                counts["empty"] += 1
                continue
            readings = cells.setdefault(channel, [])
            if readings and any(time == record.time for time, _ in readings):
                counts["twice"] += 1
                continue
            n += 1
            readings.append((record.time, value))
        counts["readings"] += n
        if self.newest is not None and record.time < self.newest:
            counts["reordered"] += n
        if self.newest is None or record.time > self.newest:
            self.newest = record.time
            return self._close(self._closed())
        return []

    def finish(self) -> list[Row]:
        """Close every row that is still open."""
        return self._close(max(self._open)) if self._open else []

    def _closed(self) -> int:
        """The last step that the watermark has passed."""
        if self.newest is None:
            return -(2**63)
        watermark = self.newest - self._rule.lateness
        if self._rule.step is None:
            # With no lateness a row is whole as soon as its record has come.
            return watermark
        return watermark // self._rule.step - 1

    def _close(self, until: int) -> list[Row]:
        rows = []
        for key in sorted(key for key in self._open if key <= until):
            rows += self._empty_before(key)
            rows.append(self._row(key, self._open.pop(key)))
            self._written = key
        return rows

    def _empty_before(self, key: int) -> list[Row]:
        """Rows for the steps in which nothing came; a long gap stays a jump in time."""
        if self._written is None or self._rule.step is None:
            return []
        missing = range(self._written + 1, key)
        return [self._row(k, {}) for k in missing] if len(missing) <= self._rule.gap else []

    def _row(self, key: int, cells: dict[str, Readings]) -> Row:
        rule = self._rule
        start = key if rule.step is None else key * rule.step
        values = {}
        for channel, readings in cells.items():
            if not readings:
                continue
            readings.sort()
            if rule.fill == "hold":
                self.last[channel] = readings[-1]
            mean = rule.combine == "mean" and len(readings) > 1
            # fsum: the same bits in whatever order the readings came
            values[channel] = (
                fsum(value for _, value in readings) / len(readings) if mean else readings[-1][1]
            )
        read = tuple(values)
        if rule.fill == "hold":
            for channel, (time, value) in self.last.items():
                if channel not in values and start - time <= rule.hold:
                    values[channel] = value
        return Row(start, values, read)

    def state(self) -> dict[str, Any]:
        """Everything that is not yet in a row, as plain values."""
        return {
            "newest": self.newest,
            "written": self._written,
            "open": [[key, cells] for key, cells in self._open.items()],
            "last": self.last,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """The reverse of `state`."""
        self.newest, self._written = state["newest"], state["written"]
        self._open = {
            key: {name: [(t, v) for t, v in readings] for name, readings in cells.items()}
            for key, cells in state["open"]
        }
        self.last = {name: (t, v) for name, (t, v) in state["last"].items()}
