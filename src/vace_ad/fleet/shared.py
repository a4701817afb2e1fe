"""One model for many machines: for those with too few rows, or for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from vace_ad.app.loading import Loaded
from vace_ad.app.training import Training, fit_detector
from vace_ad.errors import VaceError
from vace_ad.fleet.entities import Entity
from vace_ad.fleet.task import Job, load_entity, training_rows
from vace_ad.progress import silent

if TYPE_CHECKING:
    from vace_ad.detector import VACE

FILE = "shared.vace"
MACHINES = 12  # whose rows the shared model is learned from, those with the most rows


def fit_shared(entities: Sequence[Entity], job: Job) -> tuple[VACE | None, list[str]]:
    """A model of the training rows of several machines, None where none has enough rows."""
    largest = sorted(entities, key=_size, reverse=True)
    usable = (loaded for one in largest if (loaded := _normal(one, job)) is not None)
    return fit_on(list(islice(usable, MACHINES)), job)  # no more are read than are used


def fit_on(loaded: Sequence[Loaded], job: Job) -> tuple[VACE | None, list[str]]:
    """A model of these tables, of those with the channels that most of them have."""
    if not loaded:
        return None, []
    channels = Counter(one.table.names for one in loaded).most_common(1)[0][0]
    chosen = [one for one in loaded if set(one.table.names) == set(channels)]
    training = Training(chosen, None, f"{len(chosen)} machines")
    try:
        detector, _ = fit_detector(job.config, training, silent)
    except VaceError as error:
        return None, [f"no shared model could be learned: {error}"]
    return detector, [f"the shared model was learned from {len(chosen):,} machines"]


def _normal(entity: Entity, job: Job) -> Loaded | None:
    """The training rows of a machine, None where it cannot give any."""
    try:
        loaded = load_entity(entity, job.how)
        if job.alarming is None:
            return loaded
        training = training_rows(loaded, job)
    except VaceError:
        return None  # its own row says why
    assert training.rows is not None
    return replace(loaded, table=loaded.table[: training.rows])


def _size(entity: Entity) -> int:
    if entity.rows is not None:
        return entity.rows
    return sum(Path(p).stat().st_size for p, _ in entity.parts if Path(p).is_file())
