"""Where a channel was expected during an event: around its recent past, as far as it wanders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.blame import BEFORE, PAST, Wander
from vace_ad.alarms.events import Event
from vace_ad.frames.segments import missing_cells

Array = NDArray[np.float64]

BANDS = 12  # channels of an event that get one: those shown, and a few more


def expected_band(
    values: NDArray[np.floating],
    names: Sequence[str],
    event: Event,
    wander: Wander,
    usual: Array,
) -> dict[str, tuple[float, float]]:
    """Lowest and highest expected value of each suspect of an event, then of other channels.

    The middle is the median of as many rows before as it has, but at least 60, so that a long
    event is held against whole days and not the hour before it; `usual` (n_channels,) where
    there is no row before.
    """
    past = min(max(event.rows, BEFORE), PAST)
    place = {name: i for i, name in enumerate(names)}
    # One row strays farther than the mean of many; a slow swing shows only over many.
    reach = np.fmax(wander.over(1), wander.over(event.rows))  # (n_channels,)
    found = {}
    suspects = dict.fromkeys([*(name for name, _ in event.shares), *names])
    for name in list(suspects)[:BANDS]:
        channel = place[name]
        before = values[max(0, event.start - past) : event.start, channel]
        known = before[~missing_cells(before)]
        middle = float(np.median(known)) if len(known) else float(usual[channel])
        found[name] = (middle - float(reach[channel]), middle + float(reach[channel]))
    return found


def wander_of_table(values: NDArray[np.floating], events: Sequence[Event]) -> Wander:
    """How far channels wander outside events, for a table whose training is not at hand."""
    rows = values.astype(np.float64)
    keep = np.ones(len(rows), dtype=bool)
    for event in events:
        keep[event.start : event.end] = False
    rows = rows[keep] if keep.sum() >= 8 else rows
    middle = np.nan_to_num(np.nanmedian(np.where(np.isfinite(rows), rows, 0.0), axis=0))
    return Wander.fit([np.where(np.isfinite(rows), rows, middle)])
