"""What alarms need of a model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarm_model import AlarmModel
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.suspects import Conditions, DriftRange
from vace_ad.config import VACEConfig
from vace_ad.frames.idle import IdleRule
from vace_ad.frames.sampling import StepRule
from vace_ad.signals.baseline_model import Normal


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
        """Units of the channels, and how they depend on each other."""

    @property
    def drift_range(self) -> DriftRange:
        """How far channels move in training."""

    @property
    def alarm(self) -> AlarmModel:
        """The cells, and how surprising they are."""

    @property
    def calibration(self) -> Calibration:
        """How scores are distributed in normal operation."""

    @property
    def step(self) -> int | None:
        """Nanoseconds between training rows."""

    @property
    def step_rule(self) -> StepRule:
        """How times cut a series into stretches."""

    @property
    def watched(self) -> NDArray[np.bool_]:
        """Which channels are no context, (n_channels,)."""

    @property
    def conditions(self) -> Conditions:
        """The range of every channel in training."""

    @property
    def idle(self) -> IdleRule:
        """Which rows are not judged."""
