"""Replay of past records: the clock follows them.

Missing data is found by the clock, so batches end where an entity falls silent or sends again; in
between, many rows are read at once.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from vace_ad.live.clock import SetClock
from vace_ad.live.records import Record
from vace_ad.live.settings import Settings
from vace_ad.live.sources import Batch, Source


class Replay(Source[Settings]):
    """A source of past records, as if they came now."""

    def __init__(self, source: Source[Any], clock: SetClock, silence_after: int | None) -> None:
        super().__init__(Settings())
        self._source, self._clock, self._after = source, clock, silence_after
        self._waiting: deque[Record] = deque()
        self._last: Batch | None = None  # the batch that the waiting records came with
        self._heard: dict[str, int] = {}  # the longest ago first
        self._silent: set[str] = set()
        self.notes = source.notes
        self.first: int | None = None  # time of the first record
        self.newest = 0  # and of the last

    def open(self, position: Any) -> Any:
        """Begin."""
        return self._source.open(position)

    def read(self, timeout: float) -> Batch | None:
        """The records up to the next time at which an entity falls silent or sends again."""
        if not self._waiting:
            if self._last is not None and self._last.end:
                return Batch([], self._last.position, end=True)
            self._last, self.problem = self._source.read(timeout), self._source.problem
            if self._last is None:
                return None
            self._waiting.extend(self._last.records)
            if not self._waiting:
                return self._last
        assert self._last is not None
        records = self._part()
        bad, why = (self._last.bad, self._last.why) if not self._waiting else (0, "")
        return Batch(records, self._last.position if not self._waiting else None, bad, why)

    def _part(self) -> list[Record]:
        part: list[Record] = []
        until: int | None = None  # time at which a silent entity sends again
        while self._waiting:
            record = self._waiting[0]
            if until is not None and record.time > until:
                return part
            limit = self._limit()
            if limit is not None and record.time > limit:
                if not part:
                    self._clock.set(limit)
                    self._fall_silent(limit)
                return part
            if record.entity in self._silent:
                if part and part[-1].time < record.time:
                    return part
                until = record.time
            self._waiting.popleft()
            self._hear(record)
            part.append(record)
        return part

    def _limit(self) -> int | None:
        """When the next one falls silent."""
        if self._after is None:
            return None
        oldest = next(iter(self._heard.values()), None)
        return None if oldest is None else oldest + self._after

    def _fall_silent(self, now: int) -> None:
        assert self._after is not None
        gone = [name for name, heard in self._heard.items() if heard + self._after <= now]
        for name in gone:
            del self._heard[name]
        self._silent |= set(gone)

    def _hear(self, record: Record) -> None:
        if self._after is not None and record.time + self._after < self._clock.time_ns():
            self._after = None
            self.notes.append("records are not in order of time: missing data is not reported")
        self._clock.set(record.time)
        self._heard.pop(record.entity, None)
        self._heard[record.entity] = record.time
        self._silent.discard(record.entity)
        self.first = record.time if self.first is None else min(self.first, record.time)
        self.newest = max(self.newest, record.time)

    def close(self) -> None:
        """Close the source."""
        self._source.close()
