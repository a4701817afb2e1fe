"""Answers for programs: values that JSON knows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from vace_ad.alarms import Event


def event_record(event: Event, zone: str | None = None) -> dict[str, Any]:
    """An event for programs, its times in their zone."""
    times = {
        name: None if value is None else iso_time(value, zone)
        for name in ("start_time", "end_time", "peak_time", "alarm_time")
        for value in (getattr(event, name),)
    }
    return {
        "kind": event.kind,
        "start": event.start,
        "end": event.end,
        "peak": event.peak,
        **times,
        "score": event.score,
        "ratio": event.ratio,
        "unit_score": event.unit_score,
        "severity": event.severity,
        "level": event.level,
        "probability": event.probability,
        "probability_upper": event.probability_upper,
        "normal_rows": event.normal_rows,
        "signal": event.signal,
        "conditions": event.conditions,
        "shares": dict(event.shares),
        "components": dict(event.components),
        "readings": [reading._asdict() for reading in event.readings],
        "partner": event.partner,
        "lasting": event.lasting,
    }


def iso_time(time: np.datetime64, zone: str | None) -> str:
    """A time in ISO 8601: local with its offset where the zone is known, else as it stands."""
    from vace_ad.frames.zones import local_time

    local, offset = local_time(time, zone)
    return str(local).removesuffix(".000000000") + offset


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
