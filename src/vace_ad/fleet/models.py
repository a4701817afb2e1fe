"""The models of a fleet: one for each machine, for a group of them, or for all.

A model is a detector in memory, or the path of its file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from vace_ad.app.loading import Loaded
from vace_ad.app.run import TrainingRows, choose_training, fit_detector
from vace_ad.atomic import write_text
from vace_ad.detector import VACE
from vace_ad.errors import ConfigError, InputError, VaceError
from vace_ad.fleet.entities import Machine, folder_name
from vace_ad.fleet.task import Job, Model, load_entity
from vace_ad.progress import silent
from vace_ad.settings import option

FILE = "models.json"
MACHINES = 12  # whose rows a common model is learned from, those with the most rows


@dataclass
class FleetModels:
    """Which model a machine is scored with."""

    machines: dict[str, Model] = field(default_factory=dict)  # of their own
    groups: dict[str, Model] = field(default_factory=dict)
    shared: Model | None = None
    group: str | None = None  # the column that makes groups
    everybody: bool = False  # the shared model is meant for all machines
    failures: dict[str, str] = field(default_factory=dict)  # why a machine has none of its own

    def of(self, machine: Machine, at: int | None) -> tuple[Model | None, bool]:
        """The model of a machine, and whether it is shared; `at` is the index of the group."""
        own = self.machines.get(machine.name)
        if own is None and at is not None:
            own = self.groups.get(machine.keys[at])
        if own is not None:
            return own, False
        return self.shared, not self.everybody

    def write(self, folder: Path, by: Sequence[str]) -> None:
        """Write which file is whose model; they are in the same folder."""
        content = {
            "by": list(by),
            "group": self.group,
            "machines": {name: Path(str(one)).name for name, one in self.machines.items()},
            "groups": {name: Path(str(one)).name for name, one in self.groups.items()},
            "shared": None if self.shared is None else Path(str(self.shared)).name,
            "everybody": self.everybody,
        }
        write_text(folder / FILE, json.dumps(content, indent=1))

    @classmethod
    def read(cls, folder: Path) -> tuple[FleetModels, list[str]]:
        """The models in a folder, and the columns that identify a machine."""
        path = folder / FILE
        if not path.is_file():
            raise InputError(
                f"{folder} holds no models of a fleet; `vace fit --by … --models` writes them"
            )
        content = json.loads(path.read_text())
        files: list[dict[str, Model]] = [
            {name: str(folder / file) for name, file in content.get(kind, {}).items()}
            for kind in ("machines", "groups")
        ]
        shared = folder / (content.get("shared") or shared_file())
        models = cls(
            machines=files[0],
            groups=files[1],
            shared=str(shared) if shared.is_file() else None,
            group=content.get("group"),
            everybody=content.get("everybody", False),
        )
        return models, content["by"]


def shared_file(group: str = "") -> str:
    """The name of the file of a model that several machines share."""
    return f"shared-{folder_name(group)}.vace" if group else "shared.vace"


def group_column(group: str | None, by: Sequence[str]) -> int | None:
    """Which of the columns that identify machines makes groups."""
    if group is None:
        return None
    if group not in by or len(by) < 2:
        raise ConfigError(
            f"{option('group', group)}: must be one of several columns that name machines: "
            f"{option('by', f'{group},machine')} names {group} too"
        )
    return by.index(group)


def fit_shared(entities: Sequence[Machine], job: Job) -> tuple[VACE | None, list[str]]:
    """A model of the training rows of several machines, None where none has enough rows.

    It is learned from the largest machines, those of them with the channels that most have.
    """
    largest = sorted(entities, key=_size, reverse=True)
    usable = (one for entity in largest if (one := _normal(entity, job)) is not None)
    loaded = list(islice(usable, MACHINES))  # no more are read than are used
    if not loaded:
        return None, []
    channels = Counter(one.table.names for one in loaded).most_common(1)[0][0]
    chosen = [one for one in loaded if set(one.table.names) == set(channels)]
    training = TrainingRows(chosen, None, f"{len(chosen)} machines")
    try:
        detector, _ = fit_detector(job.config, training, silent)
    except VaceError as error:
        return None, [f"no shared model could be learned: {error}"]
    return detector, [f"the shared model was learned from {len(chosen):,} machines"]


def _normal(entity: Machine, job: Job) -> Loaded | None:
    """The training rows of a machine, None where it cannot give any."""
    try:
        loaded = load_entity(entity, job.how)
        if job.alarming is None:
            return loaded
        training = choose_training(loaded, job.config, job.training, job.how)
    except VaceError:
        return None  # its own row says why
    assert training.rows is not None
    return replace(loaded, table=loaded.table[: training.rows])


def _size(entity: Machine) -> int:
    if entity.rows is not None:
        return entity.rows
    return sum(Path(p).stat().st_size for p, _ in entity.parts if Path(p).is_file())
