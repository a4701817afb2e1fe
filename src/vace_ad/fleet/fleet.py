"""Fleets in Python: a table with a column that names the machine, a model for each."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from vace_ad.alarms import Budget
from vace_ad.app.keyed import refuse_no_key, with_keys
from vace_ad.app.loading import Loaded, Reading, load_frame
from vace_ad.app.run import Alarming, detect_with
from vace_ad.app.training import Training, fit_detector
from vace_ad.config import VACEConfig
from vace_ad.errors import ConfigError, InputError, NotFittedError, TooShortError, VaceError
from vace_ad.fleet.dataset import count_rows, each_machine, is_dataset, most_rows
from vace_ad.fleet.entities import JOINT
from vace_ad.fleet.found import FleetDetection
from vace_ad.fleet.pooling import LEAST, supported
from vace_ad.fleet.rows import MachineRow, Status
from vace_ad.fleet.runner import group_column, per_machine
from vace_ad.fleet.shared import MACHINES, fit_on
from vace_ad.fleet.task import Job, row_of
from vace_ad.frames.idle import word_columns
from vace_ad.progress import Progress, silent

if TYPE_CHECKING:
    import polars as pl

    from vace_ad.detector import VACE


class Machine(NamedTuple):
    """The rows of one machine."""

    name: str
    group: str  # its value in the column that makes groups; empty without one
    rows: pl.DataFrame  # without the columns that name it


@dataclass
class _Gathered:
    """What a pass over the machines gave to learn from."""

    models: dict[str, VACE] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    largest: list[Loaded] = field(default_factory=list)  # of all machines
    groups: dict[str, list[Loaded]] = field(default_factory=dict)  # the same of each group

    def keep(self, group: str, loaded: Loaded) -> None:
        """Hold on to a table while it is among the largest, and to no other."""
        self.largest = _largest([*self.largest, loaded])
        self.groups[group] = _largest([*self.groups.get(group, ()), loaded])


class Fleet:
    """A model for each machine of a table, and one for those with too few rows.

    `by` names the column or columns that tell machines apart; other keywords are settings of
    the detector. With `shared`, one model serves all machines; with `group`, one of several
    columns of `by`, one serves all machines with the same value there.

    >>> import numpy as np, polars as pl
    >>> from vace_ad.fleet.fleet import Fleet
    >>> rng = np.random.default_rng(0)
    >>> df = pl.DataFrame({"machine": np.repeat(["a", "b"], 400), "x": rng.normal(size=800)})
    >>> Fleet(by="machine", encoders=1, patch_length=16).fit(df).detect(df).overview.height
    2
    """

    def __init__(
        self,
        by: str | Sequence[str],
        *,
        shared: bool = False,
        group: str | None = None,
        **settings: Any,
    ) -> None:
        self.by = [by] if isinstance(by, str) else list(by)
        self.shared, self.group = shared, group
        preset = settings.pop("preset", None)
        self.config = VACEConfig.from_preset(preset, **settings)

    def fit(self, data: Any, *, progress: Progress = silent) -> Self:
        """Learn each machine's normal operation; what failed is in `failures_`."""
        if self.shared and self.group is not None:
            raise ConfigError(f"shared=True and group={self.group!r} both came; give one of them")
        group_column(self.group, self.by)  # refuses what is no group
        if is_dataset(data):
            return self._fit_dataset(data)
        found = _Gathered()
        machines = list(self._machines(data))
        for done, one in enumerate(machines):
            progress("machines", done, len(machines))
            try:
                loaded = self._load(one)
                found.keep(one.group, loaded)
                if self._each:
                    found.models[one.name] = self._fit_one(loaded)
            except VaceError as error:
                found.failures[one.name] = str(error)
        return self._learned(found)

    def _fit_dataset(self, data: Any) -> Self:
        """The same, a task for each machine; rows come back from those with the most only."""
        counts = count_rows(data, self.by)
        wanted = most_rows(counts, group_column(self.group, self.by), MACHINES)
        found = _Gathered()
        work = partial(self._fit_group, wanted=wanted)
        every = each_machine(data, self.by, len(counts), work)
        for name, group, model, error, loaded in sorted(every, key=lambda one: str(one[0])):
            if loaded is not None:
                found.keep(group, loaded)
            if model is not None:
                found.models[name] = model
            if error is not None:
                found.failures[name] = error
        return self._learned(found)

    def _fit_group(
        self, frame: pl.DataFrame, wanted: Collection[tuple[Any, ...]]
    ) -> tuple[str, str, VACE | None, str | None, Loaded | None] | None:
        sent = frame.select(self.by).row(0) in wanted
        for one in self._machines(frame):
            loaded = model = error = None
            try:
                loaded = self._load(one)
                model = self._fit_one(loaded) if self._each else None
            except VaceError as caught:
                error = str(caught)
            return one.name, one.group, model, error, loaded if sent else None
        return None  # rows that name no machine

    def _learned(self, found: _Gathered) -> Self:
        job = Job(Reading(), self.config, None)
        self.shared_, self.notes_ = fit_on(found.largest, job)
        self.groups_: dict[str, VACE] = {}
        for name, loaded in found.groups.items() if self.group is not None else ():
            model, notes = fit_on(loaded, job)
            self.notes_ += [f"{name}: {note}" for note in notes]
            if model is not None:
                self.groups_[name] = model
        if not found.models and not self.groups_ and self.shared_ is None:
            first = next(iter(found.failures.items()), ("all of them", "; ".join(self.notes_)))
            raise InputError(f"no machine could be learned; {first[0]!r}: {first[1]}")
        self.models_, self.failures_ = found.models, found.failures
        return self

    def detect(
        self, data: Any, *, budget: Budget | str | None = None, progress: Progress = silent
    ) -> FleetDetection:
        """The events of every machine; `budget` is for the whole fleet."""
        if not hasattr(self, "models_"):
            raise NotFittedError("this fleet has learned nothing yet: call fit first")
        if is_dataset(data):
            return self._detect_dataset(data, Budget.of(budget))
        machines = list(self._machines(data))
        alarming = Alarming(per_machine(Budget.of(budget), len(machines)))
        many = len(machines) >= LEAST
        rows = []
        for done, one in enumerate(machines):
            progress("machines", done, len(machines))
            rows.append(self._detect_one(one, alarming, many))
        return FleetDetection.of(rows, data)

    def _detect_dataset(self, data: Any, budget: Budget) -> FleetDetection:
        """The same, a task for each machine; tables of the answer are Arrow ones."""
        import polars as pl

        machines = len(count_rows(data, self.by))
        alarming = Alarming(per_machine(budget, machines))
        work = partial(self._detect_group, alarming=alarming, many=machines >= LEAST)
        rows = each_machine(data, self.by, machines, work)
        rows.sort(key=lambda row: str(row.machine))
        return FleetDetection.of(rows, pl.DataFrame().to_arrow())

    def _detect_group(
        self, frame: pl.DataFrame, alarming: Alarming, many: bool
    ) -> MachineRow | None:
        for one in self._machines(frame):
            return self._detect_one(one, alarming, many)
        return None  # rows that name no machine

    def _detect_one(self, one: Machine, alarming: Alarming, many: bool) -> MachineRow:
        started = time.perf_counter()
        model, words, status = self._model_of(one)
        if model is None:
            why = self.failures_.get(one.name, "no model knows this machine")
            return MachineRow(one.name, "failed", error=why, rows=one.rows.height)
        try:
            loaded = self._load(one, model.channels_)
            part = alarming
            if many:
                alarming = supported(alarming, model.calibration_.n_rows, model.model_.step)
            run = detect_with(model, loaded, Training([], None, words), alarming)
            row = row_of(one.name, run, status, part=part)
        except VaceError as error:
            status = "short" if isinstance(error, TooShortError) else "failed"
            row = MachineRow(one.name, status, error=str(error), rows=one.rows.height)
        return replace(row, seconds=round(time.perf_counter() - started, 3))

    def _model_of(self, one: Machine) -> tuple[VACE | None, str, Status]:
        """A machine's own model, else that of its group, else the shared one, in words too."""
        if one.name in self.models_:
            return self.models_[one.name], "its own model", "ok"
        if one.group in self.groups_:
            return self.groups_[one.group], f"the model of {one.group}", "ok"
        return self.shared_, "the shared model", "ok" if self.shared else "borrowed"

    @property
    def _each(self) -> bool:
        """Whether each machine has a model of its own."""
        return not self.shared and self.group is None

    def _fit_one(self, loaded: Loaded) -> VACE:
        return fit_detector(self.config, Training([loaded], None, "all rows"), silent)[0]

    def _load(self, one: Machine, channels: Sequence[str] | None = None) -> Loaded:
        from vace_ad.frames.read import ReadReport

        report = ReadReport(one.name, "table", one.rows.height, one.rows.width, "")
        return load_frame(
            one.rows, report, Reading(by=self.by, states=word_columns(self.config)), channels
        )

    def _machines(self, data: Any) -> Iterator[Machine]:
        at = group_column(self.group, self.by)
        frame, _ = with_keys(_as_polars(data), self.by)
        parts = frame.partition_by(self.by, as_dict=True, include_key=False)
        refuse_no_key([part.height for part in parts.values()], self.by)
        for keys in sorted(parts):
            group = "" if at is None else str(keys[at])
            yield Machine(JOINT.join(map(str, keys)), group, parts[keys])


def _largest(loaded: Sequence[Loaded]) -> list[Loaded]:
    return sorted(loaded, key=lambda one: -len(one.table))[:MACHINES]


def _as_polars(data: Any) -> pl.DataFrame:
    """Any kind of table as a polars one; a pandas index of times becomes a column."""
    import narwhals.stable.v2 as nw

    index: Any = getattr(data, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") == "M":
        title = index.name if index.name not in (None, *data.columns) else "\0index"
        data = data.rename_axis(title).reset_index()
    try:
        frame: pl.DataFrame = nw.from_native(data, eager_only=True).to_polars()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a {type(data).__name__} came; a fleet is a pandas, polars or Arrow table, or "
            "a Ray Dataset, with a column that names the machine"
        ) from error
    return frame
