"""HTTP push: programs send rows to the server, which answers when they are on disk.

`PushSource` is shared by all kinds of push: a bounded queue, and an acknowledgement when rows are
stored.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from vace_ad.errors import InputError
from vace_ad.live.records import BadRecordError, Record, from_csv, from_influx, from_json
from vace_ad.live.settings import Settings, key
from vace_ad.live.sources import Batch, NameSettings, Source

_DRAINED = 20_000  # records of one batch, about
_UNITS = {"ns": 1, "us": 10**3, "u": 10**3, "ms": 10**6, "s": 10**9}


class FullError(InputError):
    """The queue is full; the sender must wait."""


class PushSettings(Settings):
    """Keys that all sources of pushed records have."""

    pending: int = key(100_000, "most records in the queue; more are refused", low=1, high=10**8)


P = TypeVar("P", bound=PushSettings)


class PushSource(Source[P]):
    """Items that the server hands over from requests; those not answered are sent again."""

    needs_server, eager = True, True

    def __init__(self, settings: P) -> None:
        super().__init__(settings)
        self._queue: deque[tuple[Sequence[Any], Future[None]]] = deque()
        self._waiting: deque[tuple[int, Future[None]]] = deque()
        self._pending = self._count = 0
        self._ready = threading.Condition()

    def push(self, items: Sequence[Any]) -> Future[None]:
        """Queue items; the future is done when they are stored."""
        done: Future[None] = Future()
        with self._ready:
            if self._pending + len(items) > self.settings.pending and self._pending:
                raise FullError(f"{self._pending:,} records wait already; send again later")
            self._pending += len(items)
            self._queue.append((items, done))
            self._ready.notify()
        return done

    def read(self, timeout: float) -> Batch | None:
        """What requests brought."""
        with self._ready:
            if not self._queue:
                self._ready.wait(timeout)
            items: list[Any] = []
            while self._queue and len(items) < _DRAINED:
                more, done = self._queue.popleft()
                items += more
                self._count += 1
                self._waiting.append((self._count, done))
            self._pending -= len(items)
        return Batch(self._records(items), self._position()) if items else None

    def _records(self, items: list[Any]) -> list[Record]:
        """Items as records, in the order in which they were taken: here a rate can be made."""
        return items

    def _position(self) -> Any:
        return self._count

    def acknowledge(self, position: Any) -> None:
        """Answer the requests whose records are stored."""
        while self._waiting and self._waiting[0][0] <= position:
            _, done = self._waiting.popleft()
            if done.set_running_or_notify_cancel():
                done.set_result(None)

    def close(self) -> None:
        """Answer requests whose records are not stored with an error."""
        with self._ready:
            left = [done for _, done in self._waiting] + [done for _, done in self._queue]
            self._waiting.clear()
            self._queue.clear()
        for done in left:
            if done.set_running_or_notify_cancel():
                done.set_exception(FullError("the watch is stopping; send again later"))


class HttpPushSettings(PushSettings, NameSettings):
    """Keys of the source."""


class HttpSource(PushSource[HttpPushSettings]):
    """Records in the body of requests, in one of several formats."""

    SETTINGS = HttpPushSettings

    def __init__(self, settings: HttpPushSettings) -> None:
        super().__init__(settings)
        self._names = settings.names()

    def parse(self, body: bytes, kind: str, precision: str = "ns") -> list[Record]:
        """The records of a request by its content type; the first bad one refuses it whole."""
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadRecordError(f"the body is not UTF-8: {error.reason}") from None
        now = time.time_ns()
        if kind == "text/csv":
            return from_csv(text.splitlines(), self._names)
        if kind == "text/plain":
            if precision not in _UNITS:
                raise BadRecordError(f"precision must be one of {', '.join(_UNITS)}")
            return from_influx(text, self._names, now, _UNITS[precision])
        return from_json(text, self._names, now)
