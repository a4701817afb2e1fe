"""The fitted model, frozen, and its file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad import tensor_file
from vace_ad.alarms.alarm_model import AlarmModel
from vace_ad.alarms.alarm_stream import updated as updated_alarms
from vace_ad.alarms.budget import Budget, Threshold, score_threshold
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.pattern import Pattern
from vace_ad.alarms.suppression import Recogniser
from vace_ad.alarms.suspects import Conditions, DriftRange
from vace_ad.alarms.training_checks import TrainingAudit, outlying, without
from vace_ad.config import CHANGEABLE, VACEConfig
from vace_ad.errors import ConfigError, ModelFileError
from vace_ad.frames.calendar import Calendar, is_calendar
from vace_ad.frames.idle import IdleRule, watched
from vace_ad.frames.sampling import StepRule
from vace_ad.frames.spans import Span
from vace_ad.frames.table import Table, gathered
from vace_ad.frames.training_data import TrainingPart, training_parts, training_tables
from vace_ad.model_file import check, layout, rehearse, restored, settings
from vace_ad.progress import Progress, silent
from vace_ad.signals import Signal
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.ensemble import Stopwatch, held_out, learn, thinned
from vace_ad.signals.incremental import Update
from vace_ad.signals.protocol import LearnedAlone, Seasonality, prefixed, under
from vace_ad.signals.shape import Shape

Array = NDArray[np.float64]
KIND = tensor_file.FileKind("vace-ad model", 3, "a model", ModelFileError)
FAR = 0.3  # alarms expected among the training rows: for fewer, they say little about limits


@dataclass(frozen=True)
class Model(LearnedAlone):
    """A fitted model: settings, channels, signals, alarm model and calibration."""

    config: VACEConfig
    channels: tuple[str, ...]
    normal: Normal  # of all channels
    scored: Normal  # of what signals see: the context is constant there
    signals: tuple[Signal, ...]
    calibration_scores: Array  # (n,), of training rows, by streams that did not learn from them
    drift_range: DriftRange  # of channels in training, by which rows are blamed on them
    alarm: AlarmModel  # what every channel should be, and how surprising it is where it is not
    conditions: Conditions  # the range of every channel
    facts: Mapping[str, Any] = field(default_factory=dict)  # details of the fit

    @classmethod
    def fit(
        cls,
        data: Any,
        config: VACEConfig,
        progress: Progress = silent,
        *,
        sort: bool = False,
        faults: Sequence[Span] = (),
    ) -> Self:
        """Fit on tables or Parquet files of normal operation, without the rows of past faults."""
        watch = Stopwatch()
        tables, n_rows = training_tables(data, config, sort)
        channels = tables[0].names
        mine = watched(config, channels)
        tables = [table.aligned(channels) for table in tables]
        own = sum(not is_calendar(name) for name in channels)
        rule = StepRule.of([table.time for table in tables], config.max_gap)
        parts = training_parts(
            tables,
            channels,
            config,
            learn=lambda rows: Normal.fit(rows)[0].rebuild,
            rule=rule,
            idle=IdleRule(config, channels, faults),
        )
        unlike, unscored = outlying(parts, mine)
        kept = without(parts, unlike, config.least_rows) if config.robust else None
        learned = learn(kept or parts, config, progress, watch, mine)
        step = None if rule.step is None else rule.step / 1e9
        looked = TrainingAudit(
            [table.first(own) for table in tables],
            [TrainingPart(part.start, part.rows[:, :own]) for part in parts],
            learned.training.config.length,
            learned.training.seasonality,
            step,
            whole=sum(map(len, tables)) == n_rows,
            off=config.off,
        )
        notes = looked.notes(unlike, left_out=kept is not None)
        training, signals, held = learned.training, learned.signals, learned.held
        used, config = [part.rows for part in learned.parts], training.config
        same = kept is None and len(used) == len(parts)
        if unscored is None or not same:
            unscored = AlarmModel.fit(used, watched=mine)
        alarm = unscored.with_scores(held)
        watch.stamp("calibration")
        facts = {
            "rows": n_rows,
            "rows_used": sum(map(len, used)),
            "step_seconds": step,
            "zone": tables[0].zone,
            "regular_step": rule.regular,
            "pace_seconds": None if step is None else [each / 1e9 for each in rule.pace],
            "training": [note.to_plain() for note in notes],
            "data": looked.sheet(notes).to_plain(),
            "seasonality": training.seasonality._asdict(),
            "engine": "none",
            "seconds": watch.seconds,
        }
        for signal in signals:
            facts |= getattr(signal, "facts", {})
        return cls(
            config,
            channels,
            training.normal if mine.all() else Normal.fit(used)[0],
            training.normal,
            tuple(signals),
            held,
            DriftRange.fit(used),
            alarm,
            Conditions.fit(used),
            facts,
        )

    def updated(
        self, tables: Sequence[Table], accepted: Sequence[Table], progress: Progress = silent
    ) -> Self:
        """Return the model updated with new normal rows; `accepted` tables count in full.

        Scales, regressions, seasonality and encoders stay; the old rows are not needed.
        """
        watch, config = Stopwatch(), self.config
        all_parts, all_named = (self._parts(each) for each in (tables, accepted))
        parts, named = ([*map(self.to_score, each)] for each in (all_parts, all_named))
        before = int(self.facts.get("rows_used", self.facts["rows"]))
        update = Update(parts, named, before, self.scored, config, progress)
        fitted = [signal.updated(update) for signal in self.signals]
        final = held_out(fitted, self.scored, parts, config)
        watch.stamp("update")
        facts = {
            **self.facts,
            "rows": self.facts["rows"] + sum(map(len, tables)),
            "rows_used": before + sum(map(len, parts)),
            "updates": int(self.facts.get("updates", 0)) + 1,
            "seconds": {**self.facts["seconds"], **watch.seconds},
        }
        return replace(
            self,
            signals=tuple(found.signal for found in fitted),
            calibration_scores=thinned([self.calibration_scores, *final], config.max_fit_rows),
            drift_range=self.drift_range.merged(
                DriftRange.fit([*all_parts, *all_named]), update.weight
            ),
            alarm=updated_alarms(self.alarm, [*all_parts, *all_named]),
            conditions=self.conditions.merged([*all_parts, *all_named]),
            facts=facts,
        )

    def _parts(self, tables: Sequence[Table]) -> list[Array]:
        """The parts of new tables that can be used for training."""
        if not tables:
            return []
        parts = training_parts(
            tables,
            self.channels,
            self.config,
            learn=lambda rows: self.normal.rebuild,
            rule=self.step_rule,
            idle=self.idle,
        )
        return [part.rows for part in parts]

    def to_score(self, rows: Array) -> Array:
        """Rows (n, n_channels) as signals see them: the context is constant."""
        return (
            rows if self.scored is self.normal else np.where(self.watched, rows, self.scored.mean)
        )

    @cached_property
    def lines(self) -> dict[str, str]:
        """The lines of evidence, with their descriptions."""
        return {name: words for s in self.signals for name, words in s.lines.items()}

    def threshold(self, budget: Budget, step: int | None = None) -> Threshold:
        """Return the threshold of alarms: a score, or 1 for evidence divided by its limit."""
        step = self.step or step
        rate = budget.rate(step)
        if rate is None:
            return score_threshold(budget, self.calibration)
        note = None
        n_rows = self.alarm.tails.n_rows
        if rate * n_rows < FAR:
            note = (
                f"the budget is far beyond what {n_rows:,} training rows can show; the limits are "
                "extrapolated: train on more rows, or allow more alarms"
            )
        return Threshold(1.0, budget.at(step).words, note)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The channels of tables; the others come from the calendar."""
        return tuple(name for name in self.channels if not is_calendar(name))

    @cached_property
    def calendar(self) -> Calendar:
        """The channels that are computed from the time of a row."""
        channels = self.channels[len(self.inputs) :]
        return Calendar(self.config.calendar, channels, self.facts.get("zone"))

    def table(self, data: Any) -> Table:
        """Return a table, given whole or in pieces, with the channels of this model."""
        if isinstance(data, Table) and data.names == self.channels:
            return data
        return self.calendar.added(gathered(data, self.inputs), self.config.max_missing)

    @property
    def shape(self) -> Shape | None:
        """The paper's signals; None without encoders."""
        return next((signal for signal in self.signals if isinstance(signal, Shape)), None)

    @property
    def reach(self) -> int:
        """Number of rows that a series needs to be scored."""
        return self.config.length

    @property
    def period(self) -> int:
        """Period of the training rows, in rows; 0 where there is none."""
        seasonality = Seasonality(**self.facts["seasonality"])
        return seasonality.period if seasonality.clear else 0

    @property
    def step(self) -> int | None:
        """Nanoseconds between training rows, where they had a time."""
        seconds = self.facts.get("step_seconds")
        return None if not seconds else round(seconds * 1e9)

    @cached_property
    def step_rule(self) -> StepRule:
        """The rule that splits a series at jumps in time, from the training rows."""
        facts, step, gap = self.facts, self.step, self.config.max_gap
        if step is None:
            return StepRule(max_gap=gap)
        low, high = facts.get("pace_seconds") or (0.0, np.inf)
        return StepRule(step, facts.get("regular_step", True), gap, (1e9 * low, 1e9 * high))

    @cached_property
    def idle(self) -> IdleRule:
        """The rule for rows that are not scored: the machine is off, or under maintenance."""
        return IdleRule(self.config, self.channels)

    @cached_property
    def watched(self) -> NDArray[np.bool_]:
        """Which channels may raise alarms and be suspects, (n_channels,)."""
        return watched(self.config, self.channels)

    @cached_property
    def calibration(self) -> Calibration:
        """The distribution of scores in normal operation."""
        return Calibration.from_scores(self.calibration_scores, self.reach)

    def recogniser(self, patterns: Sequence[Pattern] = ()) -> Recogniser:
        """Return an object that removes accepted patterns from rows."""
        return Recogniser(
            patterns, self.channels, self.normal, self.drift_range, self.config.length
        )

    # -------------------------------------------------------------------- file

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that identify everything that affects scores."""
        description = self._description()
        shaping = {k: v for k, v in description["config"].items() if k not in CHANGEABLE}
        text = json.dumps([shaping, description["channels"], description["constants"]])
        return tensor_file.digest(text, self._arrays())[:12]

    def _description(self) -> dict[str, Any]:
        return {
            "config": self.config.to_dict(),
            "channels": list(self.channels),
            "constants": {
                "normal": self.normal.constants(),
                **{signal.key: signal.constants() for signal in self.signals},
            },
            "facts": dict(self.facts),
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {"calibration_scores": self.calibration_scores}
        for name in ("normal", "drift_range", "alarm", "conditions"):
            arrays |= prefixed(name, getattr(self, name).arrays())
        if self.scored is not self.normal:
            arrays |= prefixed("scored", self.scored.arrays())
        for signal in self.signals:
            arrays |= prefixed(signal.key, signal.arrays())
        return arrays

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, atomically."""
        tensor_file.write(path, tensor_file.pack(KIND, self._description(), self._arrays()))

    @classmethod
    def load(cls, path: str | PathLike[str], **computing: Any) -> Self:
        """Load a model; the settings in `CHANGEABLE` may differ from the fit."""
        for name in computing:
            if name not in CHANGEABLE:
                raise ConfigError(
                    f"{name!r} cannot be changed on loading, only {', '.join(CHANGEABLE)} can"
                )
        description, arrays = tensor_file.read(path, KIND, layout)
        config, channels = settings(description)
        config = VACEConfig.from_preset(None, **{**config.to_dict(), **computing})
        constants = description["constants"]
        try:
            check(arrays, description["facts"])
            normal = scored = Normal(**{**under("normal", arrays), **constants["normal"]})
            if not watched(config, channels).all():
                scored = Normal(**{**under("scored", arrays), **constants["normal"]})
            model = cls(
                config,
                channels,
                normal,
                scored,
                restored(arrays, scored, config, constants),
                arrays["calibration_scores"],
                DriftRange(**under("drift_range", arrays)),
                AlarmModel.restored(under("alarm", arrays)),
                Conditions(**under("conditions", arrays)),
                description["facts"],
            )
            plain = replace(config, engine="numpy", precision="float32", device="cpu")
            rehearse(scored, restored(arrays, scored, plain, constants), model.reach + 8)
        except ModelFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as wrong:
            raise ModelFileError(f"{path} holds a model that cannot be used: {wrong!r}") from wrong
        return model
