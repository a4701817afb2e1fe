"""Level and scale: channels outside their range, and swings wider or narrower than usual.

This is what the patch normalisation removes. A mean below or above its envelope is level, a
deviation that is too large or too small is scale; the shortest window is there for short bursts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.merge import Update
from vace_ad.signals.normal import Normal
from vace_ad.signals.protocol import Arrays, Evidence, Fitted, Layout, Signal, Training
from vace_ad.signals.window_rows import WindowsEvidence
from vace_ad.signals.window_update import update_windows
from vace_ad.signals.windows import Windowed, Windows

WINDOWED = (
    Windowed(1, (("level", 0.5), ("scale", 1.0))),
    Windowed(3, (("level", 0.5), ("scale", 1.0))),
    Windowed(12, (("scale", 0.25),)),
)


@dataclass(frozen=True)
class LevelScale(Signal):
    """Window means and deviations of every channel against their training envelope."""

    key: ClassVar[str] = "level_scale"
    lines: ClassVar[Mapping[str, str]] = {
        "level": "levels outside the range of the training",
        "scale": "swings wider or narrower than in the training",
    }

    normal: Normal
    windows: Windows

    @classmethod
    def wanted(cls, config: VACEConfig) -> bool:
        """Part of the default's amplitude signals."""
        return config.amplitude

    @classmethod
    def fit(cls, training: Training) -> Fitted:
        """Learn the envelopes of scaled training rows."""
        windows, held_out = Windows.fit(training.scaled, WINDOWED, training.config)
        return Fitted(cls(training.normal, windows), held_out)

    def updated(self, update: Update) -> Fitted:
        """Envelopes that hold old and new rows."""
        windows, held_out = update_windows(
            self.windows, update.scaled, update.scaled_accepted, update.weight
        )
        return Fitted(replace(self, windows=windows), held_out)

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream."""
        return WindowsEvidence(self.normal, self.windows, live)

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
