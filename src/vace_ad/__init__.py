"""Anomalies in multivariate time series, by Velocity-Aligned Channel Embeddings.

The names below load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vace_ad.version import __version__

if TYPE_CHECKING:
    from vace_ad.config import VACEConfig
    from vace_ad.detector import VACE, load
    from vace_ad.errors import VaceError

__all__ = ["VACE", "VACEConfig", "VaceError", "__version__", "load"]

_HOMES = {
    "VACE": "vace_ad.detector",
    "VACEConfig": "vace_ad.config",
    "VaceError": "vace_ad.errors",
    "load": "vace_ad.detector",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vace_ad' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
