"""Fleets in Python: a table with a column that names the machine, a model for each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from vace_ad.alarms import Budget
from vace_ad.app.keyed import refuse_no_key, with_keys
from vace_ad.app.loading import Loaded, Reading, load_frame
from vace_ad.app.run import Alarming, detect_with
from vace_ad.app.training import Training, fit_detector
from vace_ad.config import VACEConfig
from vace_ad.errors import InputError, NotFittedError, TooShortError, VaceError
from vace_ad.fleet.entities import JOINT
from vace_ad.fleet.incidents import find_incidents
from vace_ad.fleet.overview import incident_frame, overview_frame
from vace_ad.fleet.rows import MachineRow
from vace_ad.fleet.runner import FleetRun, per_machine, ranked
from vace_ad.fleet.shared import MACHINES, fit_on
from vace_ad.fleet.task import Job, row_of
from vace_ad.progress import Progress, silent

if TYPE_CHECKING:
    import polars as pl

    from vace_ad.detector import VACE


@dataclass(frozen=True)
class FleetDetection:
    """What was found in a fleet; tables come in the caller's kind."""

    run: FleetRun
    _like: Any = field(repr=False, default=None)

    @property
    def rows(self) -> list[MachineRow]:
        """What came of each machine, the most severe first."""
        return self.run.rows

    @property
    def overview(self) -> Any:
        """A row for each machine, the most severe first."""
        return self._kind(overview_frame(self.run).drop("folder"))

    @property
    def incidents(self) -> Any:
        """A row for each incident: events of several machines that overlap in time are one."""
        return self._kind(incident_frame(self.run.incidents))

    def __repr__(self) -> str:
        troubled = sum(bool(row.anomalies) for row in self.rows)
        failed = self.run.count("failed") + self.run.count("short")
        return (
            f"FleetDetection({len(self.run.incidents)} incidents on {troubled} of "
            f"{len(self.rows)} machines, {failed} failed)"
        )

    def _kind(self, frame: pl.DataFrame) -> Any:
        from vace_ad.frames.write import frame_like

        return frame_like(self._like, frame.to_dict(as_series=False))


class Fleet:
    """A model for each machine of a table, and one for those with too few rows.

    `by` names the column or columns that tell machines apart; other keywords are settings of
    the detector. With `shared`, one model serves all machines.

    >>> import numpy as np, polars as pl
    >>> from vace_ad.fleet.fleet import Fleet
    >>> rng = np.random.default_rng(0)
    >>> df = pl.DataFrame({"machine": np.repeat(["a", "b"], 400), "x": rng.normal(size=800)})
    >>> Fleet(by="machine", encoders=1, patch_length=16).fit(df).detect(df).overview.height
    2
    """

    def __init__(self, by: str | Sequence[str], *, shared: bool = False, **settings: Any) -> None:
        self.by = [by] if isinstance(by, str) else list(by)
        self.shared = shared
        preset = settings.pop("preset", None)
        self.config = VACEConfig.from_preset(preset, **settings)

    def fit(self, data: Any, *, progress: Progress = silent) -> Self:
        """Learn each machine's normal operation; what failed is in `failures_`."""
        models: dict[str, VACE] = {}
        failures: dict[str, str] = {}
        kept: list[Loaded] = []
        groups = list(self._groups(data))
        for done, (name, frame) in enumerate(groups):
            progress("machines", done, len(groups))
            try:
                loaded = self._load(name, frame)
                kept = sorted([*kept, loaded], key=lambda one: -len(one.table))[:MACHINES]
                if not self.shared:
                    models[name] = self._fit_one(loaded)
            except VaceError as error:
                failures[name] = str(error)
        self.shared_, self.notes_ = fit_on(kept, Job(Reading(), self.config, None))
        if not models and self.shared_ is None:
            first = next(iter(failures.items()))
            raise InputError(f"no machine could be learned; {first[0]!r}: {first[1]}")
        self.models_, self.failures_ = models, failures
        return self

    def detect(
        self, data: Any, *, budget: Budget | None = None, progress: Progress = silent
    ) -> FleetDetection:
        """The events of every machine; `budget` is for the whole fleet."""
        if not hasattr(self, "models_"):
            raise NotFittedError("this fleet has learned nothing yet: call fit first")
        groups = list(self._groups(data))
        alarming = Alarming(per_machine(budget or Budget(), len(groups)))
        rows = []
        for done, (name, frame) in enumerate(groups):
            progress("machines", done, len(groups))
            rows.append(self._detect_one(name, frame, alarming))
        return FleetDetection(FleetRun(ranked(rows), find_incidents(rows), []), data)

    def _detect_one(self, name: str, frame: pl.DataFrame, alarming: Alarming) -> MachineRow:
        started = time.perf_counter()
        borrowed = name not in self.models_
        model = self.shared_ if borrowed else self.models_[name]
        if model is None:
            why = self.failures_.get(name, "no model knows this machine")
            return MachineRow(name, "failed", error=why, rows=frame.height)
        try:
            loaded = self._load(name, frame, model.channels_)
            training = Training([], None, "the shared model" if borrowed else "its own model")
            run = detect_with(model, loaded, training, alarming)
            row = row_of(name, run, "borrowed" if borrowed and not self.shared else "ok")
        except VaceError as error:
            status = "short" if isinstance(error, TooShortError) else "failed"
            row = MachineRow(name, status, error=str(error), rows=frame.height)  # type: ignore[arg-type]
        return replace(row, seconds=round(time.perf_counter() - started, 3))

    def _fit_one(self, loaded: Loaded) -> VACE:
        return fit_detector(self.config, Training([loaded], None, "all rows"), silent)[0]

    def _load(
        self, name: str, frame: pl.DataFrame, channels: Sequence[str] | None = None
    ) -> Loaded:
        from vace_ad.frames.read import ReadReport

        report = ReadReport(name, "table", frame.height, frame.width, "")
        return load_frame(frame, report, Reading(by=self.by), channels)

    def _groups(self, data: Any) -> Iterator[tuple[str, pl.DataFrame]]:
        frame, _ = with_keys(_as_polars(data), self.by)
        parts = frame.partition_by(self.by, as_dict=True, include_key=False)
        refuse_no_key([part.height for part in parts.values()], self.by)
        for keys in sorted(parts):
            yield JOINT.join(map(str, keys)), parts[keys]


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
            f"a {type(data).__name__} came; a fleet is a pandas, polars or Arrow table with a "
            "column that names the machine"
        ) from error
    return frame
