"""The main loop: read, score, raise alarms, write a checkpoint, acknowledge."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from vace_ad.frames.time import duration_words
from vace_ad.live.alarms import Lifecycle
from vace_ad.live.checkpoint import Checkpoint
from vace_ad.live.clock import Clock
from vace_ad.live.config import Config
from vace_ad.live.database import DamagedError
from vace_ad.live.delivery import Delivery, row_listener
from vace_ad.live.deploys import Deploys
from vace_ad.live.detector import Detectors
from vace_ad.live.entity import ELSEWHERE, FITTING, WATCHING, Entity
from vace_ad.live.models import EntityModels, check_model
from vace_ad.live.plugins import make_sink, make_source
from vace_ad.live.records import Record
from vace_ad.live.registry import Registry
from vace_ad.live.silence import Silence
from vace_ad.live.sources import Batch, Source
from vace_ad.live.status import Status
from vace_ad.live.store import Store
from vace_ad.live.verdicts import Verdicts
from vace_ad.wording import plural

log = logging.getLogger("vace_ad.live")
_WAIT = 0.2  # seconds that a read may take
_TICK = 1.0
_FORGET = 3600  # ticks between removals of old alarms
_LAST = 2.0  # seconds that a stop leaves to the current batch
_AHEAD = 60.0  # seconds with readings from the future only: the clock is wrong


class Watch:
    """One source, many entities, some sinks."""

    def __init__(
        self,
        config: Config,
        detectors: Detectors,
        source: Source[Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.config, self.status, self.clock = config, Status(), clock or Clock()
        self.status.problem("start", "starting")
        self.store = Store(config.state.path, config.state.outbox, alone=True)
        try:
            self._assemble(config, detectors, source)
        except BaseException:
            self.store.close()
            raise

    def _assemble(self, config: Config, detectors: Detectors, source: Source[Any] | None) -> None:
        self.models = EntityModels(config, detectors)
        check_model(self.models.any(), config, self.store)
        self.source: Source[Any] = source or make_source(config)
        self.deliveries = [
            Delivery(part.name, make_sink(part), self.store, self.status, self.clock)
            for part in config.sinks
        ]
        self.status.sinks = [delivery.sink for delivery in self.deliveries]
        self._stopping, self._stop_at = threading.Event(), float("inf")
        self._checkpoint = Checkpoint(
            config, self.store, self.status, self.deliveries, self._stopping, self.clock
        )
        listener = row_listener(self.status.sinks)
        self.deploys = Deploys(config.deploys, self.store.meta("deploys"))
        self.registry = Registry(
            config, self.models, self.store, self._checkpoint,
            lambda name, model: Entity(name, config, model, listener, self.deploys),
        )  # fmt: skip
        self.entities, self.known = self.registry.entities, self.registry.known
        self._no_score: dict[str, str] = {}  # entities, and why
        self._to_fit: set[str] = set()  # entities with all training rows
        self.verdicts = Verdicts(self.store, self.registry, self._checkpoint)
        self._ticked = self.clock.monotonic()
        self._used: float | None = None  # when a reading was last used
        self._silence = Silence(Lifecycle("", config.alarms), config.alarms.silence_after)

    # ------------------------------------------------------------------- running

    def run(self) -> None:
        """Run until `stop`, or until the source has ended."""
        self.start()
        try:
            while not self._stopping.is_set() and self.step():
                pass
        finally:
            self.close()

    def start(self) -> None:
        """Continue from the last checkpoint."""
        here = [name for name, phase in self.known.items() if phase != ELSEWHERE]
        self._silence.begin(here, self.store.meta("silence"), self.clock.monotonic_ns())
        self._to_fit = {name for name, phase in self.known.items() if phase == FITTING}
        self.verdicts.recheck()
        self._read_deploys()
        begin = self.source.open(self.store.position)
        if begin is not None:
            self._checkpoint.end(begin)
            self.checkpoint()
        for delivery in self.deliveries:
            delivery.start()
        self.status.problem("start", None)
        log.info("watching %d entities, source %s", len(self.known), self.config.source.kind)

    def stop(self) -> None:
        """Stop soon; for signals and other threads."""
        self._stop_at = self.clock.monotonic() + _LAST
        self._stopping.set()

    def step(self) -> bool:
        """Read one batch and process it; False when the source has ended."""
        batch = self.source.read(_WAIT)
        self._release(_drained(self.source.lost))
        if batch is not None and not self._take(batch):
            return True  # a stop came before its end
        self._report_silent(_drained(self.source.silent))
        self.verdicts.apply(self.checkpoint)
        self._forget()
        self._learn()
        if self.clock.monotonic() - self._ticked >= _TICK:
            self._ticked = self.clock.monotonic()
            self._tick()
        if batch is not None and batch.end:
            self._finish()
            self.checkpoint()
            self.clock.wait(self._stopping, _WAIT / 4)
            fitting = {name for name, one in self.entities.items() if one.phase == FITTING}
            self._to_fit |= fitting  # these rows must do
            return bool(fitting)
        if self._checkpoint.due(batch is not None and self.source.eager):
            self.checkpoint()
        return True

    def checkpoint(self) -> None:
        """Write everything in one transaction, then acknowledge to the source."""
        for entity in self._checkpoint.dirty.values():
            self.known[entity.name] = entity.words
        position = self._checkpoint.write()
        if position is not None:
            self.source.acknowledge(position)

    def close(self) -> None:
        """Write everything and release all resources, within a few seconds."""
        if not self.status.problems.get("state"):
            self._tick()
            self.checkpoint()
        self.source.close()
        end = self.clock.monotonic() + 3
        for delivery in self.deliveries:
            delivery.stop(max(0.1, end - self.clock.monotonic()))
        if self._checkpoint.sent() and not self.status.problems.get("state"):
            self.checkpoint()
        self.store.close()
        self.status.tell("end", None)
        log.info("stopped")

    # ---------------------------------------------------------------------- rows

    def _take(self, batch: Batch) -> bool:
        """Process a batch, entity by entity; False if a stop came before its end.

        Within a long batch there are checkpoints, so that no alarm waits for other rows.
        """
        counts, now = self.status.counts, self.clock.time_ns()
        self._checkpoint.begin(now)
        if batch.bad:
            counts["bad"] += batch.bad
            pieces = plural(batch.bad, "piece")
            log.warning("%s from the source could not be used: %s", pieces, batch.why)
        by_name: dict[str, list[Record]] = {}
        for record in batch.records:
            by_name.setdefault(record.entity, []).append(record)
        self._silence.heard(by_name, self.clock.monotonic_ns())
        before = counts["readings"], counts["future"]
        for name, records in by_name.items():
            entity = self.registry.find(name, counts, len(records))
            if entity is None:
                continue
            clock = now if self.source.live else None
            self._checkpoint.update(entity, entity.take(records, counts, clock))
            self._check_scores(entity)
            if entity.phase == FITTING:
                self._to_fit.add(name)
            if self._checkpoint.overdue:
                self.checkpoint()
                if self.clock.monotonic() > self._stop_at:
                    return False
        self._checkpoint.end(batch.position)
        self._check_clock(batch, now, counts["readings"] - before[0], counts["future"] - before[1])
        return True

    def _check_scores(self, entity: Entity) -> None:
        """Report when an entity can have no score, and when it has scores again."""
        reason = entity.life.no_score_reason
        if (entity.name in self._no_score) == (reason is None):
            self._set_no_score(entity.name, reason)
            log.warning("%s: %s", ascii(entity.name), reason or "has scores again")

    def _set_no_score(self, name: str, reason: str | None) -> None:
        """Set or clear why an entity has no score: the watch is not ready then."""
        self._no_score.pop(name, None)
        if reason is not None:
            self._no_score[name] = reason
        who = plural(len(self._no_score), "entity has", "entities have")
        first = next((f"{one!a}: {why}" for one, why in self._no_score.items()), None)
        self.status.problem("score", first and f"{who} no score; {first}")

    def _check_clock(self, batch: Batch, now: int, used: int, future: int) -> None:
        """Report when all readings are from the future: then this clock is wrong."""
        if used:
            self._used = self.clock.monotonic()
            if self.status.problem("clock", None):
                log.warning("readings match this machine's clock again")
        elif future and (self._used is None or self.clock.monotonic() - self._used > _AHEAD):
            ahead = duration_words(max(record.time for record in batch.records) - now)
            words = (
                f"readings are up to {ahead} ahead of this machine's clock and not used; set the "
                "clock here or on the devices, or allow it with align.future"
            )
            if self.status.problem("clock", words):
                log.error("%s", words)

    def _finish(self) -> None:
        """The source has ended: finish every entity."""
        self.checkpoint()
        for name in list(self.known):
            entity = self.registry.get(name)
            self._checkpoint.update(entity, entity.finish(self.status.counts))

    def _learn(self) -> None:
        """Start fits that are due, and start to score with those that are done."""
        if self._to_fit:
            self.checkpoint()  # training rows are read from the store
            while self._to_fit:
                name = self._to_fit.pop()
                try:
                    self.models.fit(self.registry.get(name), self.store)
                except DamagedError as error:
                    self.registry.restart(name, error)
        for name, found, words in self.models.done():
            self.checkpoint()
            entity = self.registry.get(name)
            messages = []
            if entity.phase == WATCHING:
                messages = entity.retrained(found, words, self.store)
                self._checkpoint.keep(entity)
            elif found is None or isinstance(found, Exception):
                words = "%s: training failed: %s; it is tried again with more rows"
                log.warning(words, ascii(name), found)
                entity.learn_longer()
            else:
                try:
                    messages = entity.begin(found, self.store)
                    log.info("%s: the model is trained, alarms start", ascii(name))
                except DamagedError as error:
                    entity = self.registry.restart(name, error)
            self._checkpoint.update(entity, messages)

    # --------------------------------------------------------------------- rounds

    def _tick(self) -> None:
        """Once a second: problems, missing data, idle entities."""
        status = self.status
        status.counts["rounds"] += 1
        self.verdicts.recheck()
        self._read_deploys()
        for note in _drained(self.source.notes):
            log.warning("source: %s", note)
        problem = self.source.problem
        if status.problem("source", problem):
            log.warning("source: %s", problem or "works again")
        if self.source.live and not self._stopping.is_set():
            self._silent(problem)
        self.models.retrain(self.entities.values(), self.store, self.checkpoint)
        since = self.clock.monotonic_ns() - self.config.state.idle
        if self.registry.to_disk(lambda name: self._silence.recent(name, since)):
            self.checkpoint()
        if status.counts["rounds"] % _FORGET == 1:
            # by the rows' own time: a replay of last year is not old
            newest = max((one.seen for one in self.entities.values()), default=0)
            self.store.forget(min(newest, self.clock.time_ns()) - self.config.state.history)
        status.phases = Counter(phase.split(",")[0] for phase in self.known.values())
        status.loaded = len(self.entities)
        status.waiting, status.n_open = self.store.waiting(), self.store.n_open()
        status.tell("status", None)

    def _read_deploys(self) -> None:
        """Read new lines of the file of deploys; the next checkpoint stores them."""
        for wrong in self.deploys.read_file():
            log.warning("%s", wrong)
        if self.deploys.changed:
            self._checkpoint.pending.meta["deploys"] = self.deploys.state()

    def _release(self, names: Sequence[str]) -> None:
        """Release entities that another member watches now: their alarms are resolved here."""
        for name in [name for name in names if name in self.known]:
            self.registry.hand_over(name)
            self._drop(name)
            log.info("%s: its partition moved to another member of the group", ascii(name))
        if names:
            self.checkpoint()

    def _forget(self) -> None:
        """Remove entities on request: their alarms are resolved, their state is deleted."""
        for name, done in self.verdicts.removals():
            found = name in self.known
            if found:
                self.registry.remove(name)
                self._drop(name)
                self.checkpoint()
                log.info("%s: removed", ascii(name))
            if done.set_running_or_notify_cancel():
                done.set_result(found)

    def _drop(self, name: str) -> None:
        """An entity is no longer expected to send, to have scores or to be trained."""
        self._silence.forget(name)
        self._set_no_score(name, None)
        self._to_fit.discard(name)

    def _silent(self, problem: str | None) -> None:
        now = self.clock.time_ns()
        silent, messages = self._silence.tick(self.clock.monotonic_ns(), problem, now)
        self._checkpoint.alarm(messages)
        self._report_silent(silent)
        if messages:
            self._checkpoint.pending.meta["silence"] = self._silence.state()

    def _report_silent(self, names: Sequence[str]) -> None:
        """Alarms of entities without data, found by the clock or reported by themselves."""
        if self.config.alarms.silence_after is None:
            return
        now = self.clock.time_ns()
        for entity in [self.registry.get(name) for name in names if name in self.known]:
            self._checkpoint.update(entity, entity.life.silent(entity.seen or now, now))


def _drained(names: list[str]) -> list[str]:
    """What a source has listed; the list is emptied."""
    return [names.pop(0) for _ in range(len(names))]
