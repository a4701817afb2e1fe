"""Delivers scored rows to the sinks that take every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vace_ad.live.align import Row
from vace_ad.live.detector import Rows
from vace_ad.live.entity import Entity, Tell
from vace_ad.live.sinks import RowSink, Scored, Sink


def teller(sinks: Sequence[Sink[Any]]) -> Tell | None:
    """Who tells these sinks of scored rows; None where none of them wants to hear."""
    wanting = [sink for sink in sinks if isinstance(sink, RowSink)]
    if not wanting:
        return None
    bands = any(sink.bands for sink in wanting)

    def tell(
        entity: Entity,
        rows: Sequence[Row],
        cells: Rows,
        scores: Sequence[float],
        alarming: Sequence[bool],
    ) -> None:
        times = [row.time for row in rows]
        channels = tuple(entity.channels)
        scored = Scored(entity.name, channels, times, cells, list(scores), list(alarming))
        if bands:
            lower, upper = _expected(entity, times)
            scored = scored._replace(expected=(lower + upper) / 2, lower=lower, upper=upper)
        for sink in wanting:
            sink.rows(scored)

    return tell


def _expected(entity: Entity, times: Sequence[int]) -> Rows:
    """The expected range that alarms went by, (2, n, n_channels); NaN for rows without one."""
    found = np.full((2, len(times), len(entity.channels)), np.nan)
    n, first = len(times), np.datetime64(times[0], "ns")
    while (latest := entity.latest(n)) is not None:
        if len(latest.times) < n or (latest.times <= first).any():
            place = {time: i for i, time in enumerate(latest.times.astype(np.int64).tolist())}
            known = [(i, place[time]) for i, time in enumerate(times) if time in place]
            mine, theirs = np.array(known, np.intp).reshape(-1, 2).T
            found[0, mine], found[1, mine] = latest.lower[theirs], latest.upper[theirs]
            break
        n *= 2  # rows that did not come are among the last ones
    return found
