"""Answers for programs: values that JSON knows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vace_ad.alarms import Event


def event_record(event: Event) -> dict[str, Any]:
    """An event for programs."""
    times = {
        name: None if value is None else str(value)
        for name in ("start_time", "end_time", "peak_time")
        for value in (getattr(event, name),)
    }
    return {
        "kind": event.kind,
        "start": event.start,
        "end": event.end,
        "peak": event.peak,
        **times,
        "score": event.score,
        "severity": event.severity,
        "probability": event.probability,
        "signal": event.signal,
        "shares": dict(event.shares),
    }


def plain(value: Any) -> Any:
    """A value as JSON knows it: NaN becomes null, NumPy's numbers become Python's."""
    import numpy as np

    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
