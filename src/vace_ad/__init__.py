"""Anomalies in multivariate time series, by Velocity-Aligned Channel Embeddings.

The names below load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vace_ad.version import __version__

if TYPE_CHECKING:
    from vace_ad.alarms.budget import Budget
    from vace_ad.alarms.events import Event
    from vace_ad.app.reader import read
    from vace_ad.config import VACEConfig
    from vace_ad.detection import Detection
    from vace_ad.detector import VACE, load
    from vace_ad.errors import VaceError
    from vace_ad.fleet.fleet import Fleet
    from vace_ad.frames.segments import Rules
    from vace_ad.stream import Stream

__all__ = [
    "VACE",
    "Budget",
    "Detection",
    "Event",
    "Fleet",
    "Rules",
    "Stream",
    "VACEConfig",
    "VaceError",
    "__version__",
    "load",
    "read",
]

_HOMES = {
    "VACE": "vace_ad.detector",
    "Budget": "vace_ad.alarms.budget",
    "Detection": "vace_ad.detection",
    "Event": "vace_ad.alarms.events",
    "Fleet": "vace_ad.fleet.fleet",
    "Rules": "vace_ad.frames.segments",
    "Stream": "vace_ad.stream",
    "VACEConfig": "vace_ad.config",
    "VaceError": "vace_ad.errors",
    "load": "vace_ad.detector",
    "read": "vace_ad.app.reader",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vace_ad' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
