"""Level and scale: means outside the training range, and deviations above or below it.

This is what the patch normalisation removes. A mean below or above its envelope is level, a
deviation that is too large or too small is scale; the shortest window is there for short bursts.
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


class LevelScale(WindowSignal):
    """Windows of the rows themselves."""

    key: ClassVar[str] = "level_scale"
    lines: ClassVar[Mapping[str, str]] = {
        "level": "levels outside the range of the training",
        "scale": "swings wider or narrower than in the training",
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
