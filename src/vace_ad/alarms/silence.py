"""Missing data as events: jumps in time, and channels that stop reporting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import NO_DATA, Event, with_time
from vace_ad.frames.segments import missing_cells, run_edges


def no_data_events(
    values: NDArray[np.float64],
    names: Sequence[str],
    *,
    longer_than: int,
    time: NDArray[np.datetime64] | None = None,
    step: int | None = None,
    gaps: Sequence[int] = (),
) -> list[Event]:
    """Where measurements are missing for more than `longer_than` rows, in order of row.

    A jump in time before row `g` of `gaps` lies between rows, so its event is `[g, g)`. Channels
    that fall silent together make one event, which names them.
    """
    events = []
    if time is not None and step is not None:
        for row in gaps:
            missing = round(float(time[row] - time[row - 1]) / step) - 1
            if missing > longer_than:
                events.append(with_time(Event(row, row, row, NO_DATA), time))
    for (start, end), silent in _silences(values, longer_than).items():
        share = 1.0 / len(silent)
        blamed = [(names[channel], share) for channel in silent]
        event = Event(start, end, start, NO_DATA).with_blame(blamed)
        events.append(event if time is None else with_time(event, time))
    return sorted(events, key=lambda event: (event.start, event.end))


def _silences(values: NDArray[np.float64], longer_than: int) -> dict[tuple[int, int], list[int]]:
    """Row ranges without a measurement, and the channels that are silent over exactly them."""
    found: dict[tuple[int, int], list[int]] = {}
    missing = missing_cells(values)
    for channel in np.flatnonzero(missing.any(axis=0)).tolist():
        for start, end in run_edges(missing[:, channel]).tolist():
            if end - start > longer_than:
                found.setdefault((start, end), []).append(channel)
    return found
