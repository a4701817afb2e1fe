"""Relation: how channels move together, which each channel on its own cannot tell.

Every channel is predicted, row by row, from all the others by a ridge regression of training. What
is left swings more where a channel goes its own way, even within its usual range and rhythm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.merge import Update
from vace_ad.signals.normal import Normal
from vace_ad.signals.protocol import Arrays, Evidence, Fitted, Layout, Signal, Training
from vace_ad.signals.window_rows import WindowsEvidence
from vace_ad.signals.window_update import update_windows
from vace_ad.signals.windows import Windowed, Windows

Array = NDArray[np.float64]

WINDOWED = (Windowed(1, (("relation", 0.5),)), Windowed(3, (("relation", 0.5),)))


@dataclass(frozen=True)
class Relation(Signal):
    """The swings of what the others do not predict, held against their training envelope."""

    key: ClassVar[str] = "relation"
    lines: ClassVar[Mapping[str, str]] = {
        "relation": "channels that no longer move together as in the training"
    }

    normal: Normal
    windows: Windows

    @classmethod
    def wanted(cls, config: VACEConfig) -> bool:
        """Part of the default's amplitude signals."""
        return config.amplitude

    @classmethod
    def fit(cls, training: Training) -> Fitted:
        """Learn from the residuals that the fit of `Normal` held out."""
        windows, held_out = Windows.fit(training.residuals, WINDOWED, training.config)
        return Fitted(cls(training.normal, windows), held_out)

    def updated(self, update: Update) -> Fitted:
        """The regression stays; envelopes of what it leaves hold old and new rows."""
        parts = [self.normal.residuals(part) for part in update.scaled]
        accepted = [self.normal.residuals(part) for part in update.scaled_accepted]
        windows, held_out = update_windows(self.windows, parts, accepted, update.weight)
        return Fitted(replace(self, windows=windows), held_out)

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream."""
        return RelationEvidence(self.normal, self.windows, live)

    def constants(self) -> dict[str, Any]:
        """Those of the windows."""
        return self.windows.constants()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The envelopes; the regression itself is part of `Normal`."""
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


class RelationEvidence(WindowsEvidence):
    """The windows' evidence of residuals instead of rows."""

    def _seen(self, scaled: Array) -> Array:
        return self._normal.residuals(scaled)
