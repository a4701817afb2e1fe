"""Kinds of evidence, one module each. The order is that of the lines in an answer.

Other packages add kinds by entry points of the group `vace_ad.signals`; a detector that asks for
one by name (`extra_signals`) has it behind ours.
"""

from collections.abc import Sequence
from importlib.metadata import entry_points

from vace_ad.errors import ConfigError
from vace_ad.signals.distance import Distance
from vace_ad.signals.forecast import Forecast
from vace_ad.signals.protocol import Evidence, Fitted, Signal, Training
from vace_ad.signals.shape import Shape
from vace_ad.signals.spike import Spike
from vace_ad.signals.surge import Surge
from vace_ad.signals.window_signal import LevelScale, Relation

KINDS: tuple[type[Signal], ...] = (
    Shape,
    LevelScale,
    Spike,
    Relation,
    Forecast,
    Distance,
    Surge,
)

GROUP = "vace_ad.signals"

__all__ = ["KINDS", "Evidence", "Fitted", "Signal", "Training", "kinds"]


def kinds(extra: Sequence[str] = ()) -> tuple[type[Signal], ...]:
    """Ours, and those of installed packages with these names."""
    return (*KINDS, *map(_installed, extra))


def _installed(name: str) -> type[Signal]:
    for point in entry_points(group=GROUP, name=name):
        found: type[Signal] = point.load()
        return found
    there = ", ".join(sorted(entry_points(group=GROUP).names)) or "none"
    raise ConfigError(
        f"extra_signals names {name!r}, which no installed package adds; install its package, or "
        f"leave it out (installed: {there})"
    )
