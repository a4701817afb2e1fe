"""What people say of alarms: queued in the state by other threads, done by the watch."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from queue import SimpleQueue

from vace_ad.live.keeper import Keeper
from vace_ad.live.roster import Roster
from vace_ad.live.store import Store

log = logging.getLogger("vace_ad.live")


class People:
    """Verdicts on alarms. What was said is kept until it is done, also over a restart."""

    def __init__(self, store: Store, roster: Roster, keeper: Keeper) -> None:
        self._store, self._roster, self._keeper = store, roster, keeper
        self._called = threading.Event()
        self._gone: SimpleQueue[tuple[str, Future[bool]]] = SimpleQueue()

    def say(self, alarm: str, what: str) -> None:
        """An alarm was "normal", a "fault", or neither ("undo"); for other threads."""
        with closing(self._store.again()) as store:
            store.say(alarm, what)
        self._called.set()

    def forget(self, name: str) -> Future[bool]:
        """An entity is to be known no more; for other threads. True when it is done, and kept."""
        done: Future[bool] = Future()
        self._gone.put((name, done))
        return done

    def forgotten(self) -> Iterator[tuple[str, Future[bool]]]:
        """What to forget, once."""
        while not self._gone.empty():
            yield self._gone.get()

    def look(self) -> None:
        """There may be something to do: after a start, or when alarms may have ended."""
        self._called.set()

    def heed(self, checkpoint: Callable[[], None]) -> None:
        """Do as people said; with a snapshot, so that no row runs through a stream twice."""
        if not self._called.is_set():
            return
        self._called.clear()
        for number, alarm, what, name in self._store.said():
            self._keeper.pending.heeded.append(number)
            if name in self._roster.known:  # else it is the alarm of the source itself
                self._do(alarm, what, name)
            checkpoint()

    def _do(self, alarm: str, what: str, name: str) -> None:
        entity = self._roster.get(name)
        if what == "normal":
            self._keeper.alarm(entity.call_normal(alarm, self._store.patterns(alarm)))
        else:
            entity.call_back(alarm)
        entity.call_fault(alarm, self._store.stretch(alarm) if what == "fault" else None)
        log.info("%s: alarm %s: %s", ascii(name), alarm, what)
        self._keeper.dirty.pop(name, None)
        entity.keep(self._keeper.pending, snapshot=True)
