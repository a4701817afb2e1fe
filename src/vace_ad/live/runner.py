"""The watch: reads, scores, raises; keeps all of it in one transaction; then acknowledges."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from vace_ad.errors import ModelFileError, StateError
from vace_ad.frames.time import duration_words
from vace_ad.live.alarms import Life, Message, body
from vace_ad.live.alarms import Rules as AlarmRules
from vace_ad.live.align import Rule as AlignRule
from vace_ad.live.config import Config
from vace_ad.live.core import Core
from vace_ad.live.delivery import Delivery
from vace_ad.live.entity import FITTING, WATCHING, Entity, Setup
from vace_ad.live.models import Models
from vace_ad.live.plugins import kinds
from vace_ad.live.records import Record
from vace_ad.live.silence import Silence
from vace_ad.live.sinks import Sink
from vace_ad.live.sources import Batch, Source
from vace_ad.live.status import Status
from vace_ad.live.store import Pending, Store

log = logging.getLogger("vace_ad.live")
_WAIT = 0.2  # seconds that a read may take
_SNAPSHOT_SECONDS = 0.1  # of one commit, spent on snapshots
_TICK = 1.0
_FORGET = 3600  # ticks between looks for old alarms


class Watch:
    """One source, many entities, some sinks."""

    def __init__(self, config: Config, core: Core, source: Source | None = None) -> None:
        self.config, self.status = config, Status()
        self.status.problem("start", "starting")
        self.store = Store(config.state["path"], config.state["outbox"])
        self.models = Models(config, core)
        self._check_model()
        self.source: Source = source or make_source(config)
        self.deliveries = [
            Delivery(part.name, make_sink(part.kind, part.settings), self.store, self.status)
            for part in config.sinks
        ]
        self._setup = Setup(
            AlignRule.of(config.align),
            AlarmRules.of(config.alarms),
            config.limits["channels"],
            config.model["learn"],
            config.state["snapshot_rows"],
        )
        self.entities: dict[str, Entity] = {}  # in memory, the longest idle first
        self.known: dict[str, str] = {}  # every entity and what it is doing, in words
        self._pending, self._dirty = Pending(), dict[str, Entity]()
        self._taken_out: dict[str, int] = {}  # of the outbox, by sink
        self._came: int | None = None  # clock of the first record that is not kept yet
        self._batch: int | None = None  # clock when the batch at work came
        self._stopping = threading.Event()
        self._ticked = self._kept = time.monotonic()
        self._silence = Silence(Life("", self._setup.alarms), config.alarms["silence_after"])

    def _check_model(self) -> None:
        """Refuse a state that belongs to another model."""
        model = self.models.any()
        if model is None:
            return
        step, wanted = getattr(model, "step", None), self.config.align["step"]
        if step and wanted and abs(step - wanted) > 0.01 * step:
            log.warning(
                "the model was fitted on rows every %s, align.step is %s: scores will be off; "
                "make them the same", duration_words(step), duration_words(wanted),
            )  # fmt: skip
        before = self.store.meta("model")
        if before is not None and before != model.identity:
            raise StateError(
                f"{self.store.path} belongs to another model ({before}) than "
                f"{self.config.model['file']} ({model.identity}); take that model back, or start "
                "with another [state] path"
            )
        if before is None:
            self.store.commit(Pending(meta={"model": model.identity}))

    # ------------------------------------------------------------------- running

    def run(self) -> None:
        """Go on until `stop`, or until the source has ended."""
        self.start()
        try:
            while not self._stopping.is_set() and self.step():
                pass
        finally:
            self.close()

    def start(self) -> None:
        """Open everything, where the last commit left it."""
        for name, _, phase in self.store.roster():
            self.known[name] = phase
        self._silence.begin(self.known, self.store.meta("silence"))
        for name in [name for name, phase in self.known.items() if phase == FITTING]:
            self._dirty[name] = self._load(name)  # its fit begins again
        self.source.open(self.store.position)
        for delivery in self.deliveries:
            delivery.start()
        self.status.problem("start", None)
        log.info("watching %d entities, source %s", len(self.known), self.config.source.kind)

    def stop(self) -> None:
        """End soon; for signals and other threads."""
        self._stopping.set()

    def step(self) -> bool:
        """One turn; False when the source has ended."""
        batch = self.source.read(_WAIT)
        if batch is not None:
            self._take(batch)
        self._learn()
        now = time.monotonic()
        if now - self._ticked >= _TICK:
            self._ticked = now
            self._tick()
        if batch is not None and batch.end:
            self._finish()
            self.checkpoint()
            self._stopping.wait(_WAIT / 4)
            fitting = {n: one for n, one in self.entities.items() if one.phase == FITTING}
            self._dirty |= fitting  # what has come is enough to learn from
            return bool(fitting)
        if self._due(now, batch):
            self.checkpoint()
        return True

    def _due(self, now: float, batch: Batch | None) -> bool:
        if self._pending.alarms or (batch is not None and self.source.eager):
            return True
        waiting = self._dirty or self._pending.position is not None or self._sent()
        return bool(waiting) and now - self._kept >= self.config.state["checkpoint"] / 1e9

    def _sent(self) -> dict[str, int]:
        """Messages that sinks are done with since the last commit."""
        marks = {one.name: one.sent for one in self.deliveries}
        return {name: mark for name, mark in marks.items() if mark > self._taken_out.get(name, 0)}

    def close(self) -> None:
        """Keep everything, and let go; within a few seconds."""
        if not self.status.problems.get("state"):
            self._tick()
            self.checkpoint()
        self.source.close()
        end = time.monotonic() + 3
        for delivery in self.deliveries:
            delivery.stop(max(0.1, end - time.monotonic()))
        if self._sent() and not self.status.problems.get("state"):
            self.checkpoint()
        self.store.close()
        self.status.tell("end", None)
        log.info("stopped")

    # ---------------------------------------------------------------------- rows

    def _take(self, batch: Batch) -> None:
        """Work off a batch: every entity's records together."""
        counts = self.status.counts
        now = time.time_ns()
        self._batch, self._came = now, self._came or now
        if batch.bad:
            counts["bad"] += batch.bad
            log.warning("%d pieces from the source were no records: %s", batch.bad, batch.why)
        by_name: dict[str, list[Record]] = {}
        for record in batch.records:
            by_name.setdefault(record.entity, []).append(record)
        for name, records in by_name.items():
            entity = self._entity(name, counts, len(records))
            if entity is not None:
                limit = now if self.source.live else None
                self._raise(entity.take(records, counts, limit))
                self._dirty[name] = entity
        self._silence.heard(by_name, now)
        self._batch = None
        self._pending.position = batch.position

    def _entity(self, name: str, counts: Counter[str], n: int) -> Entity | None:
        """The entity of a name, from memory, from disk, or new."""
        entity = self.entities.pop(name, None)
        if entity is None:
            if name in self.known:
                return self._load(name)
            if len(self.known) >= self.config.limits["entities"]:
                counts["too_many_entities"] += n
                return None
            model = self.models.of(name)
            if model is None and self.config.model["learn"] is None:
                counts["no_model"] += n
                return None
            entity = Entity(name, self._setup, model)
            log.info("new entity %s", ascii(name))
        self.entities[name] = entity  # at the end: the last to go to disk
        self.known[name] = entity.phase
        return entity

    def _load(self, name: str) -> Entity:
        small = self.store.entity(name)
        assert small is not None
        model = self.models.of(name)
        if model is None and small["phase"] == WATCHING:
            raise ModelFileError(f"the model of {name!r} is gone; put its file back")
        entity = Entity.restored(name, self._setup, model, small, self.store)
        self.entities[name] = entity
        return entity

    def _finish(self) -> None:
        """The source has ended: the rest of every entity in memory."""
        self.checkpoint()
        for name in list(self.known):
            entity = self.entities.get(name) or self._load(name)
            self._raise(entity.finish(self.status.counts))
            self._dirty[name] = entity

    def _learn(self) -> None:
        """Start fits that are due, and go on with those that are done."""
        if self.config.model["learn"] is None:
            return
        due = [one for one in self._dirty.values() if one.phase == FITTING]
        if due or self.models.busy:
            if due:
                self.checkpoint()  # the rows to learn from are read from the store
            for entity in due:
                self.models.fit(entity, self.store)
        for name, found in self.models.done():
            self.checkpoint()
            entity = self.entities.get(name) or self._load(name)
            if isinstance(found, Exception):
                log.warning("%s: could not learn: %s; learning goes on", ascii(name), found)
                entity.learn_longer()
            else:
                self._raise(entity.begin(found, self.store))
                log.info("%s: has learned, alarms start", ascii(name))
            self._dirty[name] = entity

    # -------------------------------------------------------------------- alarms

    def _raise(self, messages: Sequence[Message]) -> None:
        """Put news of alarms into the transaction, for every sink."""
        came = self._batch or time.time_ns()
        for message in messages:
            text = body(message, self.config.link)
            self._pending.alarms.append((message.alarm, text))
            self._pending.outbox += [(one.name, text, came) for one in self.deliveries]
            key = {"open": "alarms_opened", "resolve": "alarms_resolved"}.get(message.what)
            if key:
                self.status.counts[key] += 1

    def _tick(self) -> None:
        """Once a second: problems, silence, idle entities."""
        status = self.status
        status.counts["rounds"] += 1
        for note in _drained(getattr(self.source, "notes", [])):
            log.warning("source: %s", note)
        problem = self.source.problem
        if status.problem("source", problem):
            log.warning("source: %s", problem or "works again")
        if self.source.live and not self._stopping.is_set():
            self._silent(problem)
        self._to_disk()
        if status.counts["rounds"] % _FORGET == 1:
            # by the rows' own time: a replay of last year is not old
            newest = max((one.seen for one in self.entities.values()), default=0)
            self.store.forget(min(newest, time.time_ns()) - self.config.state["history"])
        status.phases = Counter(phase.split(",")[0] for phase in self.known.values())
        status.loaded = len(self.entities)
        status.waiting, status.n_open = self.store.waiting(), self.store.n_open()
        status.tell("status", None)

    def _silent(self, problem: str | None) -> None:
        now = time.time_ns()
        silent, messages = self._silence.tick(now, problem)
        self._raise(messages)
        for name in silent:
            entity = self.entities.get(name) or self._load(name)
            self._raise(entity.life.silent(entity.seen or now, now))
            self._dirty[name] = entity
        if messages:
            self._pending.meta["silence"] = self._silence.state()

    def _to_disk(self) -> None:
        """Entities that are idle, or too many, leave memory with a snapshot."""
        limit, idle = self.config.state["active"], self.config.state["idle"]
        now = time.time_ns()
        leaving: list[str] = []
        for name, entity in self.entities.items():
            alone = entity.phase != FITTING and not self._silence.recent(name, now - idle)
            if len(self.entities) - len(leaving) > limit or alone:
                leaving.append(name)
            elif len(self.entities) <= limit:
                break  # the others came later
        if not leaving:
            return
        for name in leaving:
            entity = self.entities.pop(name)
            entity.keep(self._pending, snapshot=True)
            self._dirty.pop(name, None)
            self.models.release(name)
        self.checkpoint()

    # -------------------------------------------------------------------- keeping

    def checkpoint(self) -> None:
        """Keep everything in one transaction, then acknowledge to the source."""
        started = time.monotonic()
        pending, dirty = self._pending, list(self._dirty.values())
        for entity in dirty:
            late = time.monotonic() - started > _SNAPSHOT_SECONDS
            entity.keep(pending, snapshot=entity.due and not late)
            self.known[entity.name] = entity.words
        pending.sent = self._sent()
        if not self._commit(pending):
            return
        self._taken_out |= pending.sent
        self._pending, self._dirty = Pending(), {}
        if pending.position is not None:
            self.source.acknowledge(pending.position)
        self._told(pending, dirty, started)

    def _commit(self, pending: Pending) -> bool:
        """Write, again and again while the disk is full; nothing is read meanwhile."""
        wait = 0.1
        while True:
            try:
                lost = self.store.commit(pending)
            except sqlite3.OperationalError as error:
                words = f"{self.store.path} cannot be written: {error}; reading has stopped"
                if self.status.problem("state", words):
                    log.error("%s", words)
                if self._stopping.wait(wait):
                    return False  # nothing was acknowledged, so nothing is lost
                wait = min(10.0, 2 * wait)
                continue
            if self.status.problem("state", None):
                log.warning("%s can be written again", self.store.path)
            if lost:
                self.status.counts["outbox_dropped"] += lost
                log.error("the outbox is full: %d oldest messages were dropped", lost)
            return True

    def _told(self, pending: Pending, dirty: Iterable[Entity], started: float) -> None:
        """Count, wake the sinks, tell the page."""
        status, now = self.status, time.monotonic()
        self._kept, status.checkpoint = now, time.time()
        status.counts["checkpoints"] += 1
        status.checkpoint_seconds.observe(now - started)
        if self._came is not None:
            status.row_seconds.observe(max(0, time.time_ns() - self._came) / 1e9)
            self._came = None
        if pending.outbox:
            for delivery in self.deliveries:
                delivery.call()
        for _, text in pending.alarms:
            status.tell("alarm", text)
        for entity in dirty:
            status.tell("entity", entity.name)


def make_source(config: Config) -> Source:
    """The source that a configuration names."""
    source: Source = kinds("source")[config.source.kind].load()(config.source.settings)
    return source


def make_sink(kind: str, settings: dict[str, Any]) -> Sink:
    """A sink by kind."""
    sink: Sink = kinds("sink")[kind].load()(settings)
    return sink


def _drained(notes: list[str]) -> list[str]:
    found = list(notes)
    notes.clear()
    return found
