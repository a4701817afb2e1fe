"""The state of an entity: what a checkpoint stores of it, and how it is restored."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

from vace_ad.errors import StateError
from vace_ad.live.database import Pending
from vace_ad.live.detector import LiveModel, journal_matrix
from vace_ad.live.entity import WATCHING, Entity
from vace_ad.live.store import Store

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
    due = entity.due if snapshot is None else snapshot
    fresh = entity.n_rows > entity._kept
    if due and fresh and entity.stream is not None and entity.model is not None:
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
