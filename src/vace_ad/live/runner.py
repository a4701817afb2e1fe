"""The watch: reads, scores, raises; keeps all of it in one transaction; then acknowledges."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future

from vace_ad.frames.time import duration_words
from vace_ad.live.alarms import Life
from vace_ad.live.alarms import Rules as AlarmRules
from vace_ad.live.align import Rule as AlignRule
from vace_ad.live.clock import Clock
from vace_ad.live.config import Config
from vace_ad.live.core import Core
from vace_ad.live.delivery import Delivery
from vace_ad.live.entity import ELSEWHERE, FITTING, Entity, Setup
from vace_ad.live.keeper import Keeper
from vace_ad.live.models import Models, check_model
from vace_ad.live.parts import drained, make_sink, make_source
from vace_ad.live.people import People
from vace_ad.live.records import Record
from vace_ad.live.roster import Roster
from vace_ad.live.scored import teller
from vace_ad.live.silence import Silence
from vace_ad.live.sources import Batch, Source
from vace_ad.live.status import Status
from vace_ad.live.store import DamagedError, Store
from vace_ad.plain import plural

log = logging.getLogger("vace_ad.live")
_WAIT = 0.2  # seconds that a read may take
_TICK = 1.0
_FORGET = 3600  # ticks between looks for old alarms
_LAST = 2.0  # seconds that a stop leaves to the batch at work
_AHEAD = 60.0  # seconds of nothing but readings from the future: then it is the clock


class Watch:
    """One source, many entities, some sinks."""

    def __init__(
        self,
        config: Config,
        core: Core,
        source: Source | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.config, self.status, self.clock = config, Status(), clock or Clock()
        self.status.problem("start", "starting")
        self.store = Store(config.state["path"], config.state["outbox"], alone=True)
        try:
            self._assemble(config, core, source)
        except BaseException:
            self.store.close()
            raise

    def _assemble(self, config: Config, core: Core, source: Source | None) -> None:
        self.models = Models(config, core)
        check_model(self.models.any(), config, self.store)
        self.source: Source = source or make_source(config)
        self.deliveries = [
            Delivery(
                part.name, make_sink(part.kind, part.settings), self.store, self.status, self.clock
            )
            for part in config.sinks
        ]
        setup = Setup(
            AlignRule.of(config.align),
            AlarmRules.of(config.alarms),
            config.limits["channels"],
            config.model["learn"],
            config.state["snapshot_rows"],
            teller([delivery.sink for delivery in self.deliveries]),
        )
        self._stopping, self._stop_at = threading.Event(), float("inf")
        self._keeper = Keeper(
            config, self.store, self.status, self.deliveries, self._stopping, self.clock
        )
        self.roster = Roster(config, setup, self.models, self.store, self._keeper)
        self.entities, self.known = self.roster.entities, self.roster.known
        self._no_score: dict[str, str] = {}  # entities, and why
        self._to_fit: set[str] = set()  # entities that have all rows to learn from
        self._people = People(self.store, self.roster, self._keeper)
        self._ticked = self.clock.monotonic()
        self._used: float | None = None  # when a reading was last put in place
        self._silence = Silence(Life("", setup.alarms), config.alarms["silence_after"])

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
        self.roster.begin()
        here = [name for name, phase in self.known.items() if phase != ELSEWHERE]
        self._silence.begin(here, self.store.meta("silence"), self.clock.monotonic_ns())
        self._to_fit = {name for name, phase in self.known.items() if phase == FITTING}
        self._people.look()
        begin = self.source.open(self.store.position)
        if begin is not None:
            self._keeper.end(begin)
            self.checkpoint()
        for delivery in self.deliveries:
            delivery.start()
        self.status.problem("start", None)
        log.info("watching %d entities, source %s", len(self.known), self.config.source.kind)

    def stop(self) -> None:
        """End soon; for signals and other threads."""
        self._stop_at = self.clock.monotonic() + _LAST
        self._stopping.set()

    def say(self, alarm: str, what: str) -> None:
        """An alarm was "normal", a "fault", or neither ("undo"); for other threads, soon done."""
        self._people.say(alarm, what)

    def forget(self, name: str) -> Future[bool]:
        """An entity is to be known no more; for other threads."""
        return self._people.forget(name)

    def step(self) -> bool:
        """One turn; False when the source has ended."""
        batch = self.source.read(_WAIT)
        self._let_go(drained(getattr(self.source, "lost", [])))
        if batch is not None and not self._take(batch):
            return True  # a stop came before its end
        self._died(drained(getattr(self.source, "silent", [])))
        self._people.heed(self.checkpoint)
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
            self._to_fit |= fitting  # what has come is enough to learn from
            return bool(fitting)
        if self._keeper.due(batch is not None and self.source.eager):
            self.checkpoint()
        return True

    def checkpoint(self) -> None:
        """Keep everything in one transaction, then acknowledge to the source."""
        for entity in self._keeper.dirty.values():
            self.known[entity.name] = entity.words
        position = self._keeper.keep()
        if position is not None:
            self.source.acknowledge(position)

    def close(self) -> None:
        """Keep everything, and let go; within a few seconds."""
        if not self.status.problems.get("state"):
            self._tick()
            self.checkpoint()
        self.source.close()
        end = self.clock.monotonic() + 3
        for delivery in self.deliveries:
            delivery.stop(max(0.1, end - self.clock.monotonic()))
        if self._keeper.sent() and not self.status.problems.get("state"):
            self.checkpoint()
        self.store.close()
        self.status.tell("end", None)
        log.info("stopped")

    # ---------------------------------------------------------------------- rows

    def _take(self, batch: Batch) -> bool:
        """Work off a batch, every entity's records together; False if a stop came before its end.

        A long batch is kept in parts, so that no alarm waits for the rows of others.
        """
        counts, now = self.status.counts, self.clock.time_ns()
        self._keeper.begin(now)
        if batch.bad:
            counts["bad"] += batch.bad
            pieces = plural(batch.bad, "piece")
            log.warning("%s from the source could not be read as records: %s", pieces, batch.why)
        by_name: dict[str, list[Record]] = {}
        for record in batch.records:
            by_name.setdefault(record.entity, []).append(record)
        self._silence.heard(by_name, self.clock.monotonic_ns())
        before = counts["readings"], counts["future"]
        for name, records in by_name.items():
            entity = self.roster.meet(name, counts, len(records))
            if entity is None:
                continue
            self._keeper.alarm(entity.take(records, counts, now if self.source.live else None))
            self._keeper.dirty[name] = entity
            self._check_scores(entity)
            if entity.phase == FITTING:
                self._to_fit.add(name)
            if self._keeper.overdue:
                self.checkpoint()
                if self.clock.monotonic() > self._stop_at:
                    return False
        self._keeper.end(batch.position)
        self._check_clock(batch, now, counts["readings"] - before[0], counts["future"] - before[1])
        return True

    def _check_scores(self, entity: Entity) -> None:
        """Say so when an entity can have no score, and when it has scores again."""
        reason = entity.life.blind
        if (entity.name in self._no_score) == (reason is None):
            self._blind(entity.name, reason)
            log.warning("%s: %s", ascii(entity.name), reason or "has scores again")

    def _blind(self, name: str, reason: str | None) -> None:
        """A watch that can give an entity no score is not ready, and says why."""
        self._no_score.pop(name, None)
        if reason is not None:
            self._no_score[name] = reason
        who = plural(len(self._no_score), "entity has", "entities have")
        first = next((f"{one!a}: {why}" for one, why in self._no_score.items()), None)
        self.status.problem("score", first and f"{who} no score; {first}")

    def _check_clock(self, batch: Batch, now: int, used: int, future: int) -> None:
        """Say so when all readings are from the future: then it is this clock that is wrong."""
        if used:
            self._used = self.clock.monotonic()
            if self.status.problem("clock", None):
                log.warning("readings fit to the clock again")
        elif future and (self._used is None or self.clock.monotonic() - self._used > _AHEAD):
            ahead = duration_words(max(record.time for record in batch.records) - now)
            words = (
                f"readings are up to {ahead} ahead of this machine's clock and not used; set the "
                "clock here or on the devices, or allow it with align.future"
            )
            if self.status.problem("clock", words):
                log.error("%s", words)

    def _finish(self) -> None:
        """The source has ended: the rest of every entity in memory."""
        self.checkpoint()
        for name in list(self.known):
            entity = self.roster.get(name)
            self._keeper.alarm(entity.finish(self.status.counts))
            self._keeper.dirty[name] = entity

    def _learn(self) -> None:
        """Start fits that are due, and go on with those that are done."""
        if self._to_fit:
            self.checkpoint()  # the rows to learn from are read from the store
            while self._to_fit:
                name = self._to_fit.pop()
                try:
                    self.models.fit(self.roster.get(name), self.store)
                except DamagedError as error:
                    self.roster.renew(name, error)
        for name, found in self.models.done():
            self.checkpoint()
            entity = self.roster.get(name)
            if isinstance(found, Exception):
                log.warning("%s: could not learn: %s; learning goes on", ascii(name), found)
                entity.learn_longer()
            else:
                try:
                    self._keeper.alarm(entity.begin(found, self.store))
                    log.info("%s: has learned, alarms start", ascii(name))
                except DamagedError as error:
                    entity = self.roster.renew(name, error)
            self._keeper.dirty[name] = entity

    # --------------------------------------------------------------------- rounds

    def _tick(self) -> None:
        """Once a second: problems, silence, idle entities."""
        status = self.status
        status.counts["rounds"] += 1
        self._people.look()
        for note in drained(getattr(self.source, "notes", [])):
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
            self.store.forget(min(newest, self.clock.time_ns()) - self.config.state["history"])
        status.phases = Counter(phase.split(",")[0] for phase in self.known.values())
        status.loaded = len(self.entities)
        status.waiting, status.n_open = self.store.waiting(), self.store.n_open()
        status.tell("status", None)

    def _let_go(self, names: Sequence[str]) -> None:
        """Entities that another member watches now: their alarms end here, their state is kept."""
        pending = self._keeper.pending
        for name in [name for name in names if name in self.known]:
            entity = self.roster.get(name)
            self._keeper.alarm(entity.life.leave(entity.seen))
            entity.keep(pending, snapshot=True)
            seen, _, small = pending.entities[name]
            pending.entities[name] = seen, ELSEWHERE, small
            self.entities.pop(name)
            self._keeper.dirty.pop(name, None)
            self._silence.forget(name)
            self._blind(name, None)
            self.known[name] = ELSEWHERE
            log.info("%s: its partition went to another member of the group", ascii(name))
        if names:
            self.checkpoint()

    def _forget(self) -> None:
        """Entities that a person wants to be known no more: their alarms end, their state goes."""
        for name, done in self._people.forgotten():
            found = name in self.known
            if found:
                self.roster.forget(name)
                self._silence.forget(name)
                self._blind(name, None)
                self._to_fit.discard(name)
                self.checkpoint()
                log.info("%s: forgotten", ascii(name))
            if done.set_running_or_notify_cancel():
                done.set_result(found)

    def _silent(self, problem: str | None) -> None:
        now = self.clock.time_ns()
        silent, messages = self._silence.tick(self.clock.monotonic_ns(), problem, now)
        self._keeper.alarm(messages)
        self._died(silent)
        if self._silence.told:
            for entity in self.entities.values():
                entity.life.told(now)  # the source's silence is theirs, and no news
        if messages:
            self._keeper.pending.meta["silence"] = self._silence.state()

    def _died(self, names: Sequence[str]) -> None:
        """Entities from which nothing comes any more, by the clock or by their own last word."""
        now = self.clock.time_ns()
        if self.config.alarms["silence_after"] is None:
            return
        for name in [name for name in names if name in self.known]:
            entity = self.roster.get(name)
            self._keeper.alarm(entity.life.silent(entity.seen or now, now))
            self._keeper.dirty[name] = entity

    def _to_disk(self) -> None:
        """Entities that are idle, or too many, leave memory."""
        since = self.clock.monotonic_ns() - self.config.state["idle"]
        leaving = self.roster.to_disk(
            self._keeper.pending, lambda name: self._silence.recent(name, since)
        )
        for name in leaving:
            self._keeper.dirty.pop(name, None)
        if leaving:
            self.checkpoint()
