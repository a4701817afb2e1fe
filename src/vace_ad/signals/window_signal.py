"""Signals of sliding windows, held against a training envelope: level, scale and relation.

Level and scale: channels outside their range, and swings wider or narrower than in training.

This is what the patch normalisation removes. A mean below or above its envelope is level, a
deviation that is too large or too small is scale; the shortest window is there for short bursts.

Relation: how channels move together, which each channel on its own cannot tell.

Every channel is predicted, row by row, from all the others by a ridge regression of training. What
is left swings more where a channel goes its own way, even within its normal range and seasonality.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.incremental import Update
from vace_ad.signals.protocol import Arrays, Evidence, Fitted, Layout, Signal, Training
from vace_ad.signals.window_stream import WindowsEvidence
from vace_ad.signals.windows import Windowed, Windows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WindowSignal(Signal):
    """Window means and deviations of every channel against their training envelope."""

    windowed: ClassVar[tuple[Windowed, ...]]  # lengths, and the lines that each counts in

    normal: Normal
    windows: Windows

    @classmethod
    def wanted(cls, config: VACEConfig) -> bool:
        """Part of the default's amplitude signals."""
        return config.amplitude

    @classmethod
    @abstractmethod
    def taught_by(cls, training: Training) -> Sequence[Array]:
        """What it sees of training rows, held out."""

    @abstractmethod
    def seen(self, scaled: Array) -> Array:
        """What it sees of scaled rows."""

    @classmethod
    def fit(cls, training: Training) -> Fitted:
        """Learn the envelopes of training rows."""
        windows, without = Windows.fit(cls.taught_by(training), cls.windowed, training.config)
        each = zip(training.without, without, strict=True)
        return Fitted(cls(training.normal, windows), [cls(*pair) for pair in each])

    def updated(self, update: Update) -> Fitted:
        """Envelopes that hold old and new rows."""
        parts = [self.seen(part) for part in update.scaled]
        accepted = [self.seen(part) for part in update.scaled_accepted]
        windows, without = self.windows.updated(parts, accepted, update.weight)
        return Fitted(replace(self, windows=windows), [replace(self, windows=w) for w in without])

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream."""
        return WindowsEvidence(self.normal, self.windows, self.seen, live)

    def constants(self) -> dict[str, Any]:
        """Those of the windows."""
        return self.windows.constants()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The envelopes."""
        return self.windows.arrays()

    @classmethod
    def layout(cls, config: VACEConfig, n_channels: int, constants: Mapping[str, Any]) -> Layout:
        """What `arrays` gives."""
        return Windows.layout(config, n_channels, constants)

    @classmethod
    def restored(
        cls, arrays: Arrays, normal: Normal, config: VACEConfig, constants: Mapping[str, Any]
    ) -> Self:
        """The reverse of `arrays`."""
        return cls(normal, Windows.restored(arrays, config, constants))


class LevelScale(WindowSignal):
    """Windows of the rows themselves."""

    key: ClassVar[str] = "level_scale"
    lines: ClassVar[Mapping[str, str]] = {
        "level": "means outside the training range",
        "scale": "standard deviations outside the training range",
    }
    windowed = (
        Windowed(1, (("level", 0.5), ("scale", 1.0))),
        Windowed(3, (("level", 0.5), ("scale", 1.0))),
        Windowed(12, (("scale", 0.25),)),
    )

    @classmethod
    def taught_by(cls, training: Training) -> Sequence[Array]:
        """Scaled rows; nothing was learned from them yet."""
        return training.scaled

    def seen(self, scaled: Array) -> Array:
        """The rows as they are."""
        return scaled


class Relation(WindowSignal):
    """Windows of what the other channels do not predict; the regression is part of `Normal`."""

    key: ClassVar[str] = "relation"
    lines: ClassVar[Mapping[str, str]] = {
        "relation": "large residuals of a regression on the other channels"
    }
    windowed = (Windowed(1, (("relation", 0.5),)), Windowed(3, (("relation", 0.5),)))

    @classmethod
    def taught_by(cls, training: Training) -> Sequence[Array]:
        """The residuals that the fit of `Normal` held out."""
        return training.residuals

    def seen(self, scaled: Array) -> Array:
        """What the regression leaves of the rows; it stays as it was fitted."""
        return self.normal.residuals(scaled)
