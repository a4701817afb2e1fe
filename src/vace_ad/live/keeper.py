"""What has changed since the last commit: kept in one transaction, then told to everybody."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from vace_ad.live.alarms import Message, body
from vace_ad.live.clock import Clock
from vace_ad.live.commit import commit
from vace_ad.live.config import Config
from vace_ad.live.delivery import Delivery
from vace_ad.live.entity import Entity
from vace_ad.live.incidents import Incidents
from vace_ad.live.status import Status
from vace_ad.live.store import Pending, Store

_SNAPSHOT_SECONDS = 0.1  # of one commit, spent on snapshots
_TOGETHER = 0.1  # seconds that an alarm waits for others of its incident
_WORK = 0.5  # seconds of work on one batch after which it is kept as far as it is
_SHARE = 4  # an alarm waits so many times as long as a commit takes: most of the time is for rows


class Keeper:
    """Gathers states, alarms and messages, and writes them together."""

    def __init__(
        self,
        config: Config,
        store: Store,
        status: Status,
        deliveries: Sequence[Delivery],
        stopping: threading.Event,
        clock: Clock,
    ) -> None:
        self._config, self._store, self._status = config, store, status
        self._deliveries, self._stopping, self._clock = deliveries, stopping, clock
        self.pending = Pending()
        self.dirty: dict[str, Entity] = {}  # entities that have changed
        self._taken_out: dict[str, int] = {}  # of the outbox, by sink
        self._came: int | None = None  # clock of the first record that is not kept yet
        self._batch: int | None = None  # clock when the batch at work came
        self._alarmed: float | None = None  # when the first alarm that waits was raised
        self._began = self._kept = self._clock.monotonic()
        self._took = 0.0  # seconds, the last commit
        self._incidents = Incidents(config.alarms["group"], store.incident_of)
        self._incidents.restore(store.meta("incidents"))

    # --------------------------------------------------------------------- batches

    def begin(self, came: int) -> None:
        """Work on a batch begins."""
        self._batch, self._came = came, self._came or came
        self._began = self._clock.monotonic()

    def end(self, position: Any) -> None:
        """A batch is worked off: the source may go on after it."""
        self._batch = None
        if position is not None:  # None is a part of a batch: only its end can be gone on from
            self.pending.position = position

    @property
    def overdue(self) -> bool:
        """Whether to keep a batch as far as it is.

        The position stays that of the batch before. After a crash the batch comes again, and every
        entity drops the records that it has: it knows them by their time.
        """
        now = self._clock.monotonic()
        if self._alarmed is not None:
            return now - self._alarmed >= max(_TOGETHER, _SHARE * self._took)
        return now - max(self._began, self._kept) >= max(_WORK, _SHARE * self._took)

    def due(self, eager: bool) -> bool:
        """Whether to keep what there is between two batches; `eager` when somebody waits."""
        if self.pending.alarms or eager:
            return True
        waiting = self.dirty or self.pending.position is not None or self.sent()
        age = self._clock.monotonic() - self._kept
        return bool(waiting) and age >= self._config.state["checkpoint"] / 1e9

    # ---------------------------------------------------------------------- alarms

    def alarm(self, messages: Sequence[Message]) -> None:
        """Put news of alarms into the transaction, for every sink."""
        if not messages:
            return
        came = self._batch or self._clock.time_ns()
        self._alarmed = self._alarmed or self._clock.monotonic()
        for message in messages:
            text = body(message, self._config.link) | self._incidents.facts(message)
            self.pending.alarms.append((message.alarm, text))
            self.pending.outbox += [(one.name, text, came) for one in self._deliveries]
            key = {"open": "alarms_opened", "resolve": "alarms_resolved"}.get(message.what)
            if key:
                self._status.counts[key] += 1
        self.pending.meta["incidents"] = self._incidents.state()

    def count(self, what: str) -> None:
        """Count something that happened."""
        self._status.counts[what] += 1

    def sent(self) -> dict[str, int]:
        """Messages that sinks are done with since the last commit."""
        marks = {one.name: one.sent for one in self._deliveries}
        return {name: mark for name, mark in marks.items() if mark > self._taken_out.get(name, 0)}

    # --------------------------------------------------------------------- keeping

    def keep(self) -> Any:
        """Write everything in one transaction; returns the position that is kept now, if it is."""
        started = self._clock.monotonic()
        pending, dirty = self.pending, list(self.dirty.values())
        for entity in dirty:
            late = self._clock.monotonic() - started > _SNAPSHOT_SECONDS
            entity.keep(pending, snapshot=entity.due and not late)
        pending.sent = self.sent()
        if not commit(self._store, pending, self._status, self._stopping, self._clock):
            return None
        self._taken_out |= pending.sent
        self.pending, self.dirty = Pending(), {}
        self._told(pending, dirty, started)
        return pending.position

    def _told(self, pending: Pending, dirty: Iterable[Entity], started: float) -> None:
        """Count, wake the sinks, tell the page."""
        status, now = self._status, self._clock.monotonic()
        self._kept, self._took, self._alarmed = now, now - started, None
        status.checkpoint = self._clock.time_ns() / 1e9
        status.counts["checkpoints"] += 1
        status.checkpoint_seconds.observe(self._took)
        if self._came is not None:
            status.row_seconds.observe(max(0, self._clock.time_ns() - self._came) / 1e9)
            self._came = self._batch  # the rest of a batch came with it
        if pending.outbox:
            for delivery in self._deliveries:
                delivery.call()
        for _, text in pending.alarms:
            status.tell("alarm", text)
        for entity in dirty:
            status.tell("entity", entity.name)
