"""What makes an alarm: a budget, the threshold it means for a model, and rules for events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.blame import Wander
from vace_ad.alarms.budget import DEFAULT_ROWS, PERIODS, Budget, Threshold, choose_threshold
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.events import ANOMALY, Event
from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.alarms.severity import chance, ratio_at, severity
from vace_ad.alarms.watcher import Fixed, Sample, Start, Watcher
from vace_ad.config import VACEConfig
from vace_ad.frames.steps import StepRule
from vace_ad.signals.normal import Normal

Array = NDArray[np.float64]

NEAR_MISSES = 5  # told at most
NEAR = 0.5  # of the threshold that a near miss has at least


class Learned(Protocol):
    """What alarms need of a model."""

    @property
    def config(self) -> VACEConfig:
        """The settings."""

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels."""

    @property
    def normal(self) -> Normal:
        """What normal rows look like."""

    @property
    def wander(self) -> Wander:
        """How far channels wander in training."""

    @property
    def calibration(self) -> Calibration:
        """How scores are distributed in normal operation."""

    @property
    def calibration_scores(self) -> Array:
        """Scores of training rows by statistics that did not see them."""

    @property
    def seen_scores(self) -> Array:
        """Scores (2, n) of training rows by the finished detector, final and provisional."""

    @property
    def seen_calibration(self) -> Calibration:
        """How the final ones of them are distributed."""

    @property
    def period(self) -> int:
        """Rows after which the series plainly repeats itself; 0 where it does not."""

    @property
    def step(self) -> int | None:
        """Nanoseconds between training rows."""

    @property
    def step_rule(self) -> StepRule:
        """How times cut a series into stretches."""


@dataclass(frozen=True)
class Alarming:
    """A budget made ready for a model."""

    model: Learned
    threshold: Threshold
    rules: Rules
    rate: float | None  # alarms a row; None where a person set a threshold or a share of rows
    step: int | None  # nanoseconds between rows

    @classmethod
    def of(
        cls, model: Learned, budget: Budget | None, rules: Rules | None, step: int | None
    ) -> Self:
        """Under a budget, by default one alarm in 10,000 rows."""
        budget = budget or Budget()
        rules = rules or Rules(join=model.config.length // 2)
        step = model.step or step
        threshold = choose_threshold(budget, model.calibration, rules, step)
        return cls(model, threshold, rules, budget.rate(step), step)

    def watcher(self, provisional: bool = False) -> Watcher | Fixed:
        """Who judges scores under this budget: final ones, or those that rows get at once."""
        if self.rate is None or not self.model.config.adapt:
            return Fixed(self.threshold.value)
        return Watcher(self._provisional_start if provisional else self._start)

    @cached_property
    def _start(self) -> Start:
        """Where final scores start; worked out once for all streams of a model."""
        model, rate, known = self.model, self.rate, self.model.seen_calibration
        assert rate is not None
        seen = Sample(model.seen_scores[0], known.threshold_for(rate * known.n_rows, self.rules))
        held_out = Sample(model.calibration_scores, self.threshold.value)
        return Start.of(held_out, seen, rate, model.calibration.spacing)

    @cached_property
    def _provisional_start(self) -> Start:
        """The same for the scores that rows get at once."""
        return self._start.scaled(*self.model.seen_scores)

    def event(
        self,
        scores: Array,
        ratio: Array,
        run: Sequence[int],  # rows above the threshold
        rows: Sequence[int],  # of the fault
        kind: str = ANOMALY,
    ) -> Event:
        """An event of these rows, as strong as the run that gave it away."""
        start, end = rows
        within = slice(*run)
        most = ratio[within] == np.nanmax(ratio[within])  # evidence that lasts has many such rows
        peak = run[0] + int(np.nanargmax(np.where(most, scores[within], -np.inf)))
        strength = float(ratio[peak])
        rate = self.rate or 1.0 / DEFAULT_ROWS
        rare = chance(strength, rate, self.model.calibration.spacing)
        return Event(
            start,
            end,
            min(max(peak, start), end - 1),
            kind,
            score=float(scores[peak]),
            ratio=strength,
            probability=rare,
            severity=severity(rare, rate) if kind == ANOMALY else float("nan"),
            alarm=max(run[0], start) if kind == ANOMALY else None,
        )

    def other_budgets(self, ratio: Array) -> dict[str, int]:
        """How many anomalies there would have been under a few other budgets."""
        if self.rate is None:
            return {}
        rates = {f"1 in {n:,} rows": 1 / n for n in (1_000, 10_000, 100_000)}
        if self.step:
            rates = {f"1 a {name}": self.step / span for name, span in PERIODS.items()}
        spacing = self.model.calibration.spacing
        return {
            words: len(runs_above(ratio, self._ratio_at(rate), self.rules))
            for words, rate in rates.items()
            if rate * spacing < 0.5
        }

    def _ratio_at(self, rate: float) -> float:
        """The ratio of alarms that come at another rate, as whoever judges gives ratios."""
        assert self.rate is not None
        learned, limit = self.model.calibration, self.threshold.value
        if self.model.config.adapt:
            return ratio_at(self.rate, rate, learned.spacing)
        other = learned.threshold_for(rate * learned.n_rows, self.rules)
        return float(Fixed(limit).add(np.array([other])).ratio[0])


def near_misses(ratio: Array, runs: NDArray[np.intp], apart: int) -> NDArray[np.intp]:
    """The strongest stretches (n, 2) that lie below the threshold, away from events."""
    free = ratio.copy()
    for start, end in runs.tolist():
        free[max(0, start - apart) : end + apart] = np.nan
    found: list[tuple[int, int]] = []
    while len(found) < NEAR_MISSES and not np.isnan(free).all():
        peak = int(np.nanargmax(free))
        if not free[peak] >= NEAR:
            break
        high = np.flatnonzero(~(free >= 0.8 * free[peak]))  # where the stretch has ended
        start = int(high[high < peak].max(initial=-1)) + 1
        end = int(high[high > peak].min(initial=len(free)))
        found.append((start, end))
        free[max(0, start - apart) : end + apart] = np.nan
    return np.array(found, dtype=np.intp).reshape(-1, 2)
