"""From the outbox to the sinks: one thread each, in order, with backoff after failures.

Scored rows go to the sinks that take them by the same threads, without the outbox.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from vace_ad.live.clock import Clock
from vace_ad.live.database import Queued
from vace_ad.live.detector import Rows
from vace_ad.live.entity import Entity, RowListener
from vace_ad.live.sinks import RowSink, Scored, Sink, SinkRefusedError
from vace_ad.live.sources import Backoff
from vace_ad.live.status import Status
from vace_ad.live.store import Store

log = logging.getLogger("vace_ad.live")
_PATIENCE = 0.5  # seconds between polls of the outbox


class Delivery:
    """Delivers the messages of one sink."""

    def __init__(
        self, name: str, sink: Sink[Any], store: Store, status: Status, clock: Clock | None = None
    ) -> None:
        self.name, self.sink, self._clock = name, sink, clock or Clock()
        self._store, self._status = store, status
        self._call, self._stopping = threading.Event(), threading.Event()
        self._backoff = Backoff(first=0.2)
        self._repeated = 0.0
        self.sent = 0  # number of the last message handled; the watch deletes them from the outbox
        self._thread = threading.Thread(target=self._run, name=f"sink-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread: there is something to send."""
        self._call.set()

    def stop(self, seconds: float) -> None:
        """Send what can be sent at once, and stop."""
        self._stopping.set()
        self._call.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        store = self._store.reopen()
        try:
            while not self._stopping.is_set():
                self._call.wait(_PATIENCE)
                self._call.clear()
                self._round(store)
            self._backoff.worked()  # a last try
            self._round(store)
        finally:
            self.sink.close()
            store.close()

    def _round(self, store: Store) -> None:
        """Deliver; a state that cannot be read now is read again later, as a sink is tried."""
        with self._tried():
            self.deliver(store)

    @contextmanager
    def _tried(self) -> Iterator[None]:
        """Try what may fail in any way, as a plug-in may; its thread must go on."""
        try:
            yield
        except Exception as error:
            self._failed(error)

    def deliver(self, store: Store) -> None:
        """Send everything that waits, then what is to be repeated."""
        while self._clock.monotonic() >= self._backoff.until:
            messages = store.queued(self.name, self.sent)
            if not messages:
                break
            if not self._send(messages):
                return
        if self._backoff.until == 0.0:
            with self._tried():
                self._repeat(store)
        may = self._backoff.until == 0.0 or self._clock.monotonic() >= self._backoff.until
        if may and isinstance(self.sink, RowSink):
            with self._tried():
                if self.sink.flush():
                    self._worked([])

    def _send(self, messages: list[Queued]) -> bool:
        """Send a few messages; one that is refused for good must not hold up the others."""
        try:
            self.sink.send([message.body for message in messages])
        except SinkRefusedError as error:
            if len(messages) > 1:
                return all(self._send([message]) for message in messages)
            log.error("sink %s: message dropped: %s", self.name, error)
            self._status.counts["refused"] += 1
            self.sent = messages[-1].seq
            return True
        except Exception as error:  # a plug-in may fail in any way; its thread must go on
            self._failed(error)
            return False
        self.sent = messages[-1].seq
        self._worked(messages)
        return True

    def _worked(self, messages: list[Queued]) -> None:
        now = self._clock.time_ns()
        for message in messages:
            self._status.alert_seconds.observe(max(0, now - message.came) / 1e9)
        self._status.counts["sent"] += len(messages)
        self._backoff.worked()
        if self._status.problem(f"sink {self.name}", None):
            log.info("sink %s: works again", self.name)

    def _failed(self, error: Exception) -> None:
        wait = self._backoff.failed(self._clock.monotonic())
        self._status.counts["send_failed"] += 1
        if self._status.problem(f"sink {self.name}", str(error)):
            log.warning("sink %s: %s; messages wait, next try in %.1f s", self.name, error, wait)

    def _repeat(self, store: Store) -> None:
        every = self.sink.repeat
        if every is None or self._clock.monotonic() - self._repeated < every / 1e9:
            return
        again: list[dict[str, Any]] = [
            alarm
            for alarm in store.alarms(resolved=False, limit=10_000)
            if self.sink.repeat_acknowledged or not (alarm["acknowledged"] or alarm["normal"])
        ]
        if again:
            self.sink.send(again)
        self._repeated = self._clock.monotonic()


def row_listener(sinks: Sequence[Sink[Any]]) -> RowListener | None:
    """A function that passes scored rows to the sinks that take them; None where none does."""
    taking = [sink for sink in sinks if isinstance(sink, RowSink)]
    if not taking:
        return None
    bands = any(sink.bands for sink in taking)

    def listen(entity: Entity, scored: Scored) -> None:
        if bands:
            lower, upper = _expected(entity, scored.times)
            scored = scored._replace(expected=(lower + upper) / 2, lower=lower, upper=upper)
        for sink in taking:
            sink.rows(scored)

    return listen


def _expected(entity: Entity, times: Sequence[int]) -> Rows:
    """The expected range that alarms went by, (2, n, n_channels); NaN for rows without one."""
    found = np.full((2, len(times), len(entity.channels)), np.nan)
    n, first = len(times), np.datetime64(times[0], "ns")
    while (latest := entity.latest(n)) is not None:
        if len(latest.times) < n or (latest.times <= first).any():
            place = {time: i for i, time in enumerate(latest.times.astype(np.int64).tolist())}
            known = [(i, place[time]) for i, time in enumerate(times) if time in place]
            mine, theirs = np.array(known, np.intp).reshape(-1, 2).T
            found[0, mine], found[1, mine] = latest.lower[theirs], latest.upper[theirs]
            break
        n *= 2  # rows that did not come are among the last ones
    return found
