"""Fleets: a model for each machine, from Python and from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import polars as pl

from vace_ad.alarms import Budget, Rules
from vace_ad.app.run import Alarming
from vace_ad.config import VACEConfig
from vace_ad.detector import VACE
from vace_ad.errors import ConfigError, NotFittedError
from vace_ad.fleet.entities import MachineRow
from vace_ad.fleet.executor import Executor, is_dataset
from vace_ad.fleet.models import FleetModels
from vace_ad.fleet.overview import incident_frame, overview_frame
from vace_ad.fleet.runner import FleetRun, run_fleet
from vace_ad.fleet.task import Job, detector_of
from vace_ad.frames.idle import word_columns
from vace_ad.frames.read_options import ReadOptions, TrainingOptions
from vace_ad.frames.table import frame_like
from vace_ad.progress import Progress, silent


@dataclass(frozen=True)
class FleetDetection:
    """The result of `Fleet.detect`; its tables have the type of the data."""

    run: FleetRun
    _like: Any = field(repr=False, default=None)

    @property
    def rows(self) -> list[MachineRow]:
        """The result of each machine, the most severe first."""
        return self.run.rows

    @property
    def overview(self) -> Any:
        """A row for each machine, the most severe first."""
        return self._kind(overview_frame(self.run).drop("folder"))

    @property
    def incidents(self) -> Any:
        """A row for each incident: events of several machines at the same time are one."""
        return self._kind(incident_frame(self.run.incidents))

    def __repr__(self) -> str:
        troubled = sum(bool(row.anomalies) for row in self.rows)
        failed = self.run.count("failed") + self.run.count("short")
        return (
            f"FleetDetection({len(self.run.incidents)} incidents on {troubled} of "
            f"{len(self.rows)} machines, {failed} failed)"
        )

    def _kind(self, frame: pl.DataFrame) -> Any:
        return frame_like(self._like, frame.to_dict(as_series=False))


class Fleet:
    """A model for each machine, and one for those with too few rows.

    Data are a table in memory (pandas, polars, Arrow), a Ray Dataset, or the paths that
    `vace detect --by` takes.

    Parameters
    ----------
    by : str or list of str
        Column or columns that identify a machine.
    shared : bool
        Fit one model for all machines.
    group : str, optional
        One of the columns of `by`: fit one model for all machines with the same value there.
    jobs : int
        Number of machines processed in parallel, each in its own process.
    cluster : str, optional
        Address of a Ray cluster to compute on, or "auto"; "local" starts one on this machine.
    reading : ReadOptions, optional
        How tables are read, such as ``ReadOptions(time_zone="Europe/Berlin")``.
    **settings
        Settings of the detector, as in :class:`vace_ad.VACE`.

    Attributes
    ----------
    models_ : dict
        The detector of each machine that has its own.
    groups_ : dict
        The detector of each group.
    shared_ : VACE or None
        The detector of machines without their own.
    failures_ : dict
        The reason for each machine that has no detector of its own.
    notes_ : list of str
        Notes on the fit.

    Examples
    --------
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
        jobs: int = 1,
        cluster: str | None = None,
        reading: ReadOptions | None = None,
        **settings: Any,
    ) -> None:
        self.by = [by] if isinstance(by, str) else list(by)
        self.shared, self.group = shared, group
        self.executor = Executor(jobs, cluster)
        preset = settings.pop("preset", None)
        self.config = VACEConfig.from_preset(preset, **settings)
        states = word_columns(self.config)
        self.reading = replace(reading or ReadOptions(), by=self.by, states=states)

    def fit(
        self, data: Any, *, folder: str | Path | None = None, progress: Progress = silent
    ) -> Self:
        """Fit a model of normal operation for each machine; `failures_` has those that failed.

        With a `folder`, the models are written there: an interrupted fit resumes, and `Fleet.load`
        reads them. `progress` is a callback.
        """
        run = self._run(data, Job(self.reading, self.config, None), folder, progress)
        self._fitted, self.run_ = run.models, run
        if folder is not None:
            run.models.write(Path(folder), self.by)
        return self

    @classmethod
    def load(
        cls,
        folder: str | Path,
        by: str | Sequence[str] | None = None,
        *,
        jobs: int = 1,
        cluster: str | None = None,
        reading: ReadOptions | None = None,
        maintenance: Sequence[str] = (),
    ) -> Self:
        """Load the fleet whose models `fit` wrote to a folder.

        `by` is that of the fit by default; `jobs`, `cluster` and `reading` are as in the
        constructor. `maintenance` replaces the maintenance windows of the models.
        """
        models, known = FleetModels.read(Path(folder))
        fleet = cls(
            by or known,
            group=models.group,
            jobs=jobs,
            cluster=cluster,
            reading=reading,
            maintenance=tuple(maintenance),
        )
        fleet._fitted = models
        return fleet

    def detect(
        self,
        data: Any,
        *,
        budget: Budget | str | None = None,
        rules: Rules | None = None,
        step: int | None = None,
        folder: str | Path | None = None,
        score_format: str = "parquet",
        command: str = "",
        progress: Progress = silent,
    ) -> FleetDetection:
        """Return the events of every machine; `budget` is for the whole fleet.

        `rules` and `step` are as in `VACE.detect`. With a `folder`, the results of each machine are
        written there, with scores in `score_format`, and an interrupted run resumes; `command` is
        recorded with them. `progress` is a callback.
        """
        if not hasattr(self, "_fitted"):
            raise NotFittedError("this fleet is not fitted yet: call fit first")
        job = self._job(budget, rules, step, score_format, command)
        run = self._run(data, job, folder, progress, models=self._fitted)
        return FleetDetection(run, _like(data))

    def fit_detect(
        self,
        data: Any,
        *,
        train: Any = None,
        training: TrainingOptions | None = None,
        budget: Budget | str | None = None,
        rules: Rules | None = None,
        step: int | None = None,
        folder: str | Path | None = None,
        score_format: str = "parquet",
        command: str = "",
        progress: Progress = silent,
    ) -> FleetDetection:
        """Fit on the leading rows of each machine, or on `train`; return the events of the others.

        `training` selects the leading rows: by share, by number, or before a time. The other
        parameters are as in `detect`.
        """
        job = self._job(budget, rules, step, score_format, command)
        job = replace(job, training=training or TrainingOptions())
        run = self._run(data, job, folder, progress, train=train)
        return FleetDetection(run, _like(data))

    @property
    def models_(self) -> dict[str, VACE]:
        """The detector of each machine that has its own."""
        return {name: detector_of(one) for name, one in self._fitted.machines.items()}

    @property
    def groups_(self) -> dict[str, VACE]:
        """The detector of each group."""
        return {name: detector_of(one) for name, one in self._fitted.groups.items()}

    @property
    def shared_(self) -> VACE | None:
        """The detector of machines without their own, or None."""
        shared = self._fitted.shared
        return None if shared is None else detector_of(shared)

    @property
    def failures_(self) -> dict[str, str]:
        """The reason for each machine that has no detector of its own."""
        return self._fitted.failures

    @property
    def notes_(self) -> list[str]:
        """Notes on the fit."""
        return self.run_.notes

    def _run(
        self,
        data: Any,
        job: Job,
        folder: str | Path | None,
        progress: Progress,
        *,
        models: FleetModels | None = None,
        train: Any = None,
    ) -> FleetRun:
        if self.shared and self.group is not None:
            raise ConfigError(f"shared=True and group={self.group!r} cannot be combined; give one")
        return run_fleet(
            data,
            job,
            None if folder is None else Path(folder),
            executor=self.executor,
            shared=self.shared,
            group=self.group,
            models=models,
            train=train,
            progress=progress,
        )

    def _job(
        self,
        budget: Budget | str | None,
        rules: Rules | None,
        step: int | None,
        kind: str,
        command: str,
    ) -> Job:
        alarming = Alarming(Budget.of(budget), rules or Rules(), step)
        return Job(self.reading, self.config, alarming, kind=kind, command=command)


def _like(data: Any) -> Any:
    """A table of the kind that answers come in: Arrow for a Ray Dataset."""
    return pl.DataFrame().to_arrow() if is_dataset(data) else data
