"""Relation: residuals of each channel given the others.

Every channel is predicted, row by row, from all the others by a ridge regression of training. What
is left swings more where a channel goes its own way, even within its normal range and seasonality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.protocol import Training
from vace_ad.signals.window_signal import WindowSignal
from vace_ad.signals.windows import Windowed

Array = NDArray[np.float64]


class Relation(WindowSignal):
    """Windows of what the other channels do not predict; the regression is part of `Normal`."""

    key: ClassVar[str] = "relation"
    lines: ClassVar[Mapping[str, str]] = {
        "relation": "channels that no longer move together as in the training"
    }
    windowed = (Windowed(1, (("relation", 0.5),)), Windowed(3, (("relation", 0.5),)))

    @classmethod
    def taught_by(cls, training: Training) -> Sequence[Array]:
        """The residuals that the fit of `Normal` held out."""
        return training.residuals

    def seen(self, scaled: Array) -> Array:
        """What the regression leaves of the rows; it stays as it was fitted."""
        return self.normal.residuals(scaled)
