"""Operator feedback on alarms: queued by other threads, applied by the main loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from queue import SimpleQueue

from vace_ad.live.checkpoint import Checkpoint
from vace_ad.live.registry import Registry
from vace_ad.live.store import Store

log = logging.getLogger("vace_ad.live")


class Verdicts:
    """The queue of verdicts; it is stored, so a restart loses none."""

    def __init__(self, store: Store, registry: Registry, checkpoint: Checkpoint) -> None:
        self._store, self._registry, self._checkpoint = store, registry, checkpoint
        self._new = threading.Event()
        self._removals: SimpleQueue[tuple[str, Future[bool]]] = SimpleQueue()

    def submit(self, alarm: str, what: str) -> None:
        """Queue that an alarm was "normal", a "fault", or neither ("undo"); from any thread."""
        with closing(self._store.reopen()) as store:
            store.submit(alarm, what)
        self._new.set()

    def remove(self, name: str) -> Future[bool]:
        """Queue the removal of an entity, from any thread; True once it is on disk."""
        done: Future[bool] = Future()
        self._removals.put((name, done))
        return done

    def removals(self) -> Iterator[tuple[str, Future[bool]]]:
        """The entities to remove, once."""
        while not self._removals.empty():
            yield self._removals.get()

    def recheck(self) -> None:
        """Look at the queue again: after a start, or when alarms may have ended."""
        self._new.set()

    def apply(self, write: Callable[[], None]) -> None:
        """Apply what is queued; with a snapshot, so that no row runs through a stream twice."""
        if not self._new.is_set():
            return
        self._new.clear()
        for number, alarm, what, name in self._store.submitted():
            self._checkpoint.pending.applied.append(number)
            if name in self._registry.known:  # else it is the alarm of the source itself
                self._apply(alarm, what, name)
            write()

    def _apply(self, alarm: str, what: str, name: str) -> None:
        entity = self._registry.get(name)
        if what == "normal":
            self._checkpoint.alarm(entity.mark_normal(alarm, self._store.patterns(alarm)))
        else:
            entity.undo_normal(alarm)
        if entity.model is not None:  # any other verdict takes a fault back
            span = self._store.span(alarm) if what == "fault" else None
            entity.model.mark_fault(alarm, name, span)
        log.info("%s: alarm %s: %s", ascii(name), alarm, what)
        self._checkpoint.keep(entity)
