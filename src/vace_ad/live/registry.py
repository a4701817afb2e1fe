"""The entities: in memory, on disk, or new."""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Callable

from vace_ad.errors import ModelFileError
from vace_ad.live.alarms import Alarm
from vace_ad.live.checkpoint import Checkpoint, restore
from vace_ad.live.config import Config
from vace_ad.live.detector import LiveModel
from vace_ad.live.entity import ELSEWHERE, FITTING, WATCHING, Entity
from vace_ad.live.models import EntityModels
from vace_ad.live.store import Store

log = logging.getLogger("vace_ad.live")


class Registry:
    """Every entity by name; those with recent records are in memory."""

    def __init__(
        self,
        config: Config,
        models: EntityModels,
        store: Store,
        checkpoint: Checkpoint,
        make: Callable[[str, LiveModel | None], Entity],
    ) -> None:
        """`make` gives a new entity of a name and a model."""
        self._config, self._models, self._store = config, models, store
        self._checkpoint, self._make = checkpoint, make
        self.entities: dict[str, Entity] = {}  # in memory, the longest idle first
        # every entity and its phase, in words
        self.known: dict[str, str] = {name: phase for name, _, phase in store.roster()}
        self._before = set(self.known)  # not loaded since the start

    def get(self, name: str) -> Entity:
        """An entity that is known."""
        return self.entities.get(name) or self._load(name)

    def find(self, name: str, counts: Counter[str], n: int) -> Entity | None:
        """The entity of `n` records, from memory, from disk or new; None if there are too many."""
        entity = self.entities.pop(name, None)
        if entity is None:
            if name in self.known:
                return self._load(name)
            if len(self.known) >= self._config.limits.entities:
                counts["too_many_entities"] += n
                return None
            model = self._models.of(name)
            if model is None and self._config.model.learn is None:
                counts["no_model"] += n
                return None
            entity = self._make(name, model)
            log.info("new entity %s", ascii(name))
        self.entities[name] = entity  # at the end: the last to go to disk
        self.known[name] = entity.phase
        return entity

    def _load(self, name: str) -> Entity:
        try:
            entity = self._restored(name)
        except (sqlite3.Error, OSError, MemoryError):
            raise  # the machine, not the entity
        except Exception as error:  # damage shows in any way; it costs this entity alone
            return self.restart(name, error)
        if name in self._before:
            self._before.discard(name)
            entity.expect_replay()
        self.entities[name] = entity
        return entity

    def _restored(self, name: str) -> Entity:
        small = self._store.entity(name)
        assert small is not None
        model = self._models.of(name)
        if model is None and small["phase"] == WATCHING:
            raise ModelFileError(f"the model of {name!r} is gone")
        entity = self._make(name, model)
        restore(entity, small, self._store)
        return entity

    def restart(self, name: str, error: Exception) -> Entity:
        """Start an entity again whose state cannot be used; its alarms are resolved."""
        entity = self._make(name, self._usable_model(name))
        log.error(
            "%s: its state cannot be used and is set aside, %s: %s", ascii(name),
            "its stream starts again" if entity.model else "its training starts again", error,
        )  # fmt: skip
        alarms = [Alarm.from_body(body) for body in self._store.open_alarms(name)]
        entity.life.open.update({(one.kind, one.channel): one for one in alarms})
        last = max((one.sent for one in alarms), default=0)
        self._checkpoint.update(entity, entity.life.resolve_all(last))
        self._checkpoint.pending.set_aside.append(name)
        self._checkpoint.count("damaged")
        self.known[name] = entity.words
        self.entities[name] = entity
        return entity

    def _usable_model(self, name: str) -> LiveModel | None:
        """The model of an entity; a trained one that cannot be read is trained again."""
        learns = self._config.model.learn is not None
        try:
            model = self._models.of(name)
        except ModelFileError:
            if not learns:
                raise
            self._models.set_aside(name)
            return None
        if model is None and not learns:
            raise ModelFileError(f"the model of {name!r} is gone; put its file back")
        return model

    def _unload(self, name: str) -> Entity:
        """Resolve the alarms of an entity and take it out of memory."""
        entity = self.get(name)
        self._checkpoint.alarm(entity.life.resolve_all(entity.seen))
        self._checkpoint.dirty.pop(name, None)
        return self.entities.pop(name)

    def hand_over(self, name: str) -> None:
        """Keep the state of an entity that another member watches from now on."""
        pending = self._checkpoint.pending
        self._checkpoint.keep(self._unload(name))
        seen, _, small = pending.entities[name]
        pending.entities[name] = seen, ELSEWHERE, small
        self.known[name] = ELSEWHERE

    def remove(self, name: str) -> None:
        """Remove an entity; further readings of it make a new one."""
        self._unload(name)
        pending = self._checkpoint.pending
        pending.journal = [row for row in pending.journal if row.name != name]
        for kept in (pending.entities, pending.snapshots, pending.forgotten):
            kept.pop(name, None)
        pending.gone.append(name)
        del self.known[name]
        self._models.forget(name)

    def to_disk(self, recent: Callable[[str], bool]) -> bool:
        """Move entities that are not `recent`, or too many, to disk with a snapshot."""
        limit, leaving = self._config.state.active, list[str]()
        for name, entity in self.entities.items():
            alone = entity.phase != FITTING and not recent(name)
            if len(self.entities) - len(leaving) > limit or alone:
                leaving.append(name)
            elif len(self.entities) <= limit:
                break  # the others came later
        for name in leaving:
            self._checkpoint.keep(self.entities.pop(name))
            self._models.release(name)
        return bool(leaving)
