"""Checkpoints of a watch: what is stored of its entities, and how they are restored."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from vace_ad.errors import StateError
from vace_ad.live.alarms import Message, body
from vace_ad.live.clock import Clock
from vace_ad.live.config import Config
from vace_ad.live.database import Pending
from vace_ad.live.delivery import Delivery
from vace_ad.live.detector import LiveModel, journal_matrix
from vace_ad.live.entity import WATCHING, Entity
from vace_ad.live.incidents import Incidents
from vace_ad.live.status import Status
from vace_ad.live.store import Store

log = logging.getLogger("vace_ad.live")
_SNAPSHOT_SECONDS = 0.1  # of one checkpoint, spent on snapshots
_TOGETHER = 0.1  # seconds that an alarm waits for others of its incident
_WORK = 0.5  # seconds of work on one batch after which a checkpoint is written
_SHARE = 4  # an alarm waits so many times as long as a checkpoint takes
_STATE = {  # key in the stored state: attribute
    "phase": "phase", "n_rows": "n_rows", "base": "_base", "origin": "origin", "seen": "seen",
    "start": "start", "learn": "learn", "learned": "learned", "heard": "_heard",
    "accepted": "accepted", "hushed": "_suppressed", "blind": "_unscored", "idle": "idle",
    "trained": "trained", "model": "model_words",
}  # fmt: skip
# Keys that states of earlier releases lack.
_LATER = ("accepted", "hushed", "blind", "idle", "trained", "model")


def keep(entity: Entity, pending: Pending, snapshot: bool | None = None) -> None:
    """Add the changes to a transaction; `snapshot` forces or forbids that of the stream."""
    pending.journal += entity._journal
    entity._journal = []
    small = {
        "aligner": entity.aligner.state(), "life": entity.life.state(),
        "settling": entity._settling.state(),
        "channels": None if entity._config.model.learn is None else entity.channels,
        "running": entity.stream is not None,
        **{key: getattr(entity, name) for key, name in _STATE.items()},
    }  # fmt: skip
    pending.entities[entity.name] = (entity.seen, entity.words, json.dumps(small))
    if kept := entity._config.retrain.kept:
        pending.needed[entity.name] = entity.seen - kept
    new_rows = entity.n_rows - entity._kept  # since the last one
    due = new_rows >= entity._config.state.snapshot_rows if snapshot is None else snapshot
    if due and new_rows > 0 and entity.stream is not None and entity.model is not None:
        state = entity.stream.to_bytes()
        pending.snapshots[entity.name] = (entity.n_rows, entity.model.identity, state)
        entity._kept = entity.n_rows
    elif entity.stream is None and entity.phase == WATCHING:
        pending.forgotten[entity.name] = entity.n_rows


def restore(entity: Entity, small: dict[str, Any], store: Store) -> None:
    """Continue a new entity from the last checkpoint; rows since its snapshot are added again."""
    entity.aligner.restore(small["aligner"])
    entity.life.restore(small["life"])
    entity._settling.restore(small.get("settling", {}))
    if small["channels"] is not None:
        entity._set_channels(small["channels"])
    for key, attribute in _STATE.items():
        if key in small or key not in _LATER:
            setattr(entity, attribute, small[key])
    entity.accepted = [(alarm, pattern) for alarm, pattern in entity.accepted]
    if small["running"] and entity.model is not None:
        _restore_stream(entity, entity.model, store)


def _restore_stream(entity: Entity, model: LiveModel, store: Store) -> None:
    kept = store.snapshot(entity.name)
    start = entity._base
    if kept is not None and kept[0] > entity._base:
        if kept[1] != model.identity:
            raise StateError(
                f"the state of {entity.name!r} belongs to another model ({kept[1]}, not "
                f"{model.identity}); take that model, or start with another [state] path"
            )
        start, entity.stream = kept[0], model.restore(kept[2])
        entity._kept = start
    else:
        entity.stream = model.stream()
    rows = store.journal(entity.name, start, entity.n_rows)
    cells, times = journal_matrix(rows, len(entity.channels))
    cuts = [row - start for row in entity._settling.rows if start <= row < entity.n_rows]
    for first, end in pairwise([0, *cuts, len(cells)]):
        if first in cuts:
            entity.stream.judge_afresh(new_level=True)
        if first == end:
            continue
        added = entity.stream.add(cells[first:end], times[first:end])  # alarms were kept with it
        entity._count_accepted(added.changes)
        stamps = times[first:end].astype(np.int64).tolist()
        entity.scores.extend(stamps, added.provisional.tolist())
    if entity.accepted:
        model.accept(entity.stream, entity.accepted)


class Checkpoint:
    """Collects states, alarms and messages, and writes them together."""

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
        self._removed: dict[str, int] = {}  # last message deleted from the outbox, by sink
        self._arrival: int | None = None  # clock of the first record that is not written yet
        self._batch: int | None = None  # clock when the current batch came
        self._alarm_since: float | None = None  # when the first alarm that waits was raised
        self._began = self._written = self._clock.monotonic()
        self._seconds = 0.0  # duration of the last checkpoint
        self._incidents = Incidents(config.alarms.group, store.incident_of)
        self._incidents.restore(store.meta("incidents"))

    def begin(self, arrival: int) -> None:
        """Work on a batch begins."""
        self._batch, self._arrival = arrival, self._arrival or arrival
        self._began = self._clock.monotonic()

    def end(self, position: Any) -> None:
        """A batch is done; None for a part of a batch, which has no position to continue from."""
        self._batch = None
        if position is not None:
            self.pending.position = position

    @property
    def overdue(self) -> bool:
        """Whether to write within a batch.

        The position stays that of the batch before. After a crash the batch comes again, and every
        entity drops the records that it has: it knows them by their time.
        """
        now = self._clock.monotonic()
        if self._alarm_since is not None:
            return now - self._alarm_since >= max(_TOGETHER, _SHARE * self._seconds)
        return now - max(self._began, self._written) >= max(_WORK, _SHARE * self._seconds)

    def due(self, eager: bool) -> bool:
        """Whether to write between two batches; `eager` if a sender waits."""
        if self.pending.alarms or eager:
            return True
        waiting = self.dirty or self.pending.position is not None or self.sent()
        age = self._clock.monotonic() - self._written
        return bool(waiting) and age >= self._config.state.checkpoint / 1e9

    def alarm(self, messages: Sequence[Message]) -> None:
        """Add messages about alarms, for every sink."""
        if not messages:
            return
        arrival = self._batch or self._clock.time_ns()
        self._alarm_since = self._alarm_since or self._clock.monotonic()
        for message in messages:
            text = body(message, self._config.link) | self._incidents.facts(message)
            self.pending.alarms.append((message.alarm, text))
            self.pending.outbox += [(one.name, text, arrival) for one in self._deliveries]
            counter = {"open": "alarms_opened", "resolve": "alarms_resolved"}.get(message.what)
            if counter:
                self.count(counter)
        self.pending.meta["incidents"] = self._incidents.state()

    def update(self, entity: Entity, messages: Sequence[Message]) -> None:
        """An entity has changed, with these messages."""
        self.alarm(messages)
        self.dirty[entity.name] = entity

    def keep(self, entity: Entity) -> None:
        """Add the state of an entity with a snapshot, as it is now."""
        keep(entity, self.pending, snapshot=True)
        self.dirty.pop(entity.name, None)

    def count(self, what: str) -> None:
        """Count something that happened."""
        self._status.counts[what] += 1

    def sent(self) -> dict[str, int]:
        """The last message that each sink has delivered since the last checkpoint."""
        marks = {one.name: one.sent for one in self._deliveries}
        return {name: mark for name, mark in marks.items() if mark > self._removed.get(name, 0)}

    def write(self) -> Any:
        """Write everything in one transaction; returns the position that is on disk now, if any."""
        started = self._clock.monotonic()
        pending, dirty = self.pending, list(self.dirty.values())
        for entity in dirty:
            late = self._clock.monotonic() - started > _SNAPSHOT_SECONDS
            keep(entity, pending, snapshot=False if late else None)
        pending.sent = self.sent()
        if not self._commit(pending):
            return None
        self._removed |= pending.sent
        self.pending, self.dirty = Pending(), {}
        self._publish(pending, dirty, started)
        return pending.position

    def _commit(self, pending: Pending) -> bool:
        """Retry while the disk is full; nothing is read meanwhile. False if stopped before."""
        status, store, wait = self._status, self._store, 0.1
        while True:
            try:
                lost = store.commit(pending)
            except sqlite3.OperationalError as error:
                words = f"{store.path} cannot be written: {error}; reading has stopped"
                if status.problem("state", words):
                    log.error("%s", words)
                if self._clock.wait(self._stopping, wait):
                    return False  # nothing was acknowledged, so nothing is lost
                wait = min(10.0, 2 * wait)
                continue
            if status.problem("state", None):
                log.warning("%s can be written again", store.path)
            if lost:
                status.counts["outbox_dropped"] += lost
                log.error("the outbox is full: %d oldest messages were dropped", lost)
            return True

    def _publish(self, pending: Pending, dirty: Iterable[Entity], started: float) -> None:
        """Count, wake the sinks, inform the page."""
        status, now = self._status, self._clock.monotonic()
        self._written, self._seconds, self._alarm_since = now, now - started, None
        status.checkpoint = self._clock.time_ns() / 1e9
        status.counts["checkpoints"] += 1
        status.checkpoint_seconds.observe(self._seconds)
        if self._arrival is not None:
            status.row_seconds.observe(max(0, self._clock.time_ns() - self._arrival) / 1e9)
            self._arrival = self._batch  # the rest of a batch came with it
        if pending.outbox:
            for delivery in self._deliveries:
                delivery.wake()
        for _, text in pending.alarms:
            status.tell("alarm", text)
        for entity in dirty:
            status.tell("entity", entity.name)
