"""Newer models of entities, from their own recent rows, on a schedule."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from vace_ad.alarms.events import ANOMALY
from vace_ad.live.checkpoint import Checkpoint
from vace_ad.live.detector import LiveModel, Rows, Times, journal_matrix
from vace_ad.live.entity import Entity
from vace_ad.live.entity_state import keep
from vace_ad.live.sections import RetrainSettings
from vace_ad.live.store import Store

if TYPE_CHECKING:
    from vace_ad.live.models import EntityModels

log = logging.getLogger("vace_ad.live")


class Retraining(NamedTuple):
    """What a newer model is trained on and judged by; stretches are [start, end] in nanoseconds."""

    rows: Rows
    time: Times
    faults: list[tuple[int, int]]  # as people said
    doubtful: list[tuple[int, int]]  # alarms that nobody judged: not trained on


def recent_rows(entity: Entity, store: Store, kept: int) -> Retraining:
    """The rows of the last `kept` nanoseconds, and what is known about them."""
    since = entity.seen - kept
    rows = [row for row in store.journal(entity.name) if row[1] >= since]
    known = [(a, entity.seen if b is None else b, fault)
             for a, b, fault in store.stretches(entity.name, ANOMALY)]  # fmt: skip
    known = [one for one in known if one[1] >= since]
    faults = [(a, b) for a, b, fault in known if fault]
    doubtful = [(a, b) for a, b, fault in known if not fault]
    return Retraining(*journal_matrix(rows, len(entity.channels)), faults, doubtful)


class Retrainer:
    """Starts trainings that are due, and goes on with models that are not worse."""

    def __init__(
        self, how: RetrainSettings, models: EntityModels, store: Store, checkpoint: Checkpoint
    ) -> None:
        self._how = how
        self._models, self._store, self._checkpoint = models, store, checkpoint

    def start(self, entities: Iterable[Entity], write: Callable[[], None]) -> None:
        """Start the trainings that are due; `write` brings all rows into the store first."""
        every = self._how.every
        if every is None:
            return
        due = [one for one in entities if one.watching and one.seen - one.trained >= every]
        if due:
            write()
        recent = partial(recent_rows, store=self._store, kept=self._how.kept)
        for entity in due:
            self._models.retrain(entity, recent)

    def take(self, entity: Entity, found: LiveModel | Exception | None, words: str) -> None:
        """A training has ended: go on with the newer model where there is one, and tell it."""
        messages = []
        if isinstance(found, Exception):
            words = f"a newer model could not be trained: {found}"
        elif found is not None and found is not entity.model:
            messages = entity.renew(found, self._store)
        entity.model_words = words
        log.info("%s: %s", ascii(entity.name), words)
        self._checkpoint.update(entity, messages)
        keep(entity, self._checkpoint.pending, snapshot=True)
