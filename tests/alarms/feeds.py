"""A model with all that a feed of alarms needs, without encoders, and feeds run in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from vace_ad.alarms.alarm_model import AlarmModel
from vace_ad.alarms.alarm_stream import Change
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.events import Event
from vace_ad.alarms.feed import AlarmFeed
from vace_ad.alarms.scan import describe
from vace_ad.alarms.suspects import Conditions, DriftRange
from vace_ad.config import VACEConfig
from vace_ad.frames.calendar import Calendar
from vace_ad.frames.idle import IdleRule
from vace_ad.frames.sampling import StepRule
from vace_ad.frames.segments import Piece, Rules
from vace_ad.signals.baseline_model import Normal

RARE = Budget(1, "rows")  # one alarm in 10,000 rows


@dataclass
class Toy:
    """What alarms need of a model, learned from complete rows."""

    train: np.ndarray
    config: VACEConfig = field(default_factory=VACEConfig)
    step: int | None = None  # nanoseconds

    def __post_init__(self) -> None:
        self.channels = self.inputs = tuple("abcdefghijkl"[: self.train.shape[1]])
        self.calendar = Calendar()
        self.normal, *_ = Normal.fit([self.train])
        self.drift_range = DriftRange.fit([self.train])
        self.alarm = AlarmModel.fit([self.train])
        self.idle = IdleRule(self.config, self.channels)
        self.watched = np.ones(len(self.channels), bool)
        self.conditions = Conditions.fit([self.train])
        scores = np.random.default_rng(0).gamma(2, 0.2, len(self.train))
        self.calibration = Calibration.from_scores(scores)

    @property
    def step_rule(self) -> StepRule:
        return StepRule(self.step, max_gap=self.config.max_gap)


@dataclass
class Run:
    """All that a feed said."""

    changes: list[Change] = field(default_factory=list)
    evidence: np.ndarray = field(default_factory=lambda: np.empty(0))
    surprise: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def events(self) -> list[Event]:
        return [change.event for change in self.changes if change.what == "resolve"]


def feed(toy: Toy, rules: Rules | None = None, budget: Budget = RARE) -> AlarmFeed:
    return AlarmFeed(toy, budget, rules, None)


def add(alarms: AlarmFeed, rows: np.ndarray, run: Run, came: np.ndarray | None = None) -> None:
    """The next rows, all decided at once."""
    came = np.ones(len(rows), bool) if came is None else came
    alarms.expect(came, None, None)
    taken = alarms.take(Piece(rows, len(rows)))
    run.changes += taken.changes
    run.evidence = np.concatenate([run.evidence, taken.evidence])
    run.surprise = np.concatenate([run.surprise, taken.surprise])


def run_feed(toy: Toy, rows: np.ndarray, cuts: Sequence[int] = (), **how) -> Run:
    """A feed from the first row to the end, in chunks."""
    alarms, run = feed(toy, **how), Run()
    for part in np.split(rows, list(cuts)):
        add(alarms, part, run)
    run.changes += alarms.finish().changes
    return run


def line_of(kind: str, channel: int, n_channels: int) -> int:
    """The number of a line, by counting; `channel` does not matter for whole rows."""
    return next(
        line
        for line in count()
        if (found := describe(line, n_channels)).kind == kind and found.channel in (channel, None)
    )
