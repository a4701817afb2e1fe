"""The context of an event: rows shown before and after, and what changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vace_ad.report.data import ReportData, ReportEvent
from vace_ad.report.pyramid import drawable

MIN_CONTEXT = 64  # rows shown on either side of even the shortest event
CONTEXT = 1.0  # rows shown on either side, as a multiple of the event's own length


def surroundings(event: ReportEvent, n_rows: int) -> tuple[int, int]:
    """Return the rows [start, end) of an event with its before and after."""
    margin = max(MIN_CONTEXT, round(CONTEXT * (event.end - event.start)))
    return max(0, event.start - margin), min(n_rows, event.end + margin)


def typical_values(column: NDArray[np.floating], event: ReportEvent) -> list[float | None]:
    """Return a channel's median before, during and after an event; None where it has no value."""
    first, last = surroundings(event, len(column))
    parts = (first, event.start), (event.start, event.end), (event.end, last)
    return [_median(drawable(column[a:b])) for a, b in parts]


def channels_by_blame(data: ReportData) -> list[int]:
    """Return all channel numbers, the one blamed most over all events first."""
    blame = np.zeros(len(data.channels))
    place = {name: i for i, name in enumerate(data.channels)}
    for event in data.events:
        weight = event.severity if np.isfinite(event.severity) else 0.0
        for name, share in event.shares:
            blame[place[name]] += weight * share
    return [int(i) for i in np.argsort(-blame, kind="stable")]


def _median(values: NDArray[np.float64]) -> float | None:
    there = values[~np.isnan(values)]
    return float(np.median(there)) if len(there) else None
