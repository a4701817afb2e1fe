"""Alarms by a fixed threshold of the score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarm_stream import Change
from vace_ad.alarms.events import LEAST, Event, groups_of, plain_event, restored_event, severity
from vace_ad.alarms.learned import Learned
from vace_ad.alarms.suspects import blame, suspicion
from vace_ad.frames.segments import Rules
from vace_ad.signals.row_buffer import RowBuffer

Array = NDArray[np.float64]

RECENT = 256  # rows that an event is blamed by


class ScoreFeed:
    """An event is a run of rows above the threshold, joined across dips of `rules.join` rows."""

    def __init__(self, model: Learned, threshold: float, rules: Rules | None) -> None:
        self._model, self.threshold = model, threshold
        self._rules = rules or Rules()
        self._rows = RowBuffer(len(model.channels))
        self._n = 0
        self._open: Event | None = None
        self._reported = False
        self._quiet_until = -1

    def add(
        self, rows: Array, times: NDArray[np.datetime64] | None, scores: Array
    ) -> tuple[Change, ...]:
        """What the next rows (n, n_channels) with these scores (n,) change."""
        self._rows.keep(RECENT)
        self._rows.add(rows)
        changes: list[Change] = []
        for i, score in enumerate(scores.tolist()):
            time = None if times is None else times[i]
            later = len(rows) - 1 - i
            if score > self.threshold:
                changes += self._above(score, time, later)
            elif self._open is not None and self._n - self._open.end >= self._rules.join:
                changes += self._over()
            self._n += 1
        return tuple(changes)

    def _above(self, score: float, time: np.datetime64 | None, later: int) -> list[Change]:
        row, event = self._n, self._open
        if event is None:
            event = Event(row, row + 1, row, alarm=row, start_time=time, alarm_time=time)
            self._reported = False
        louder = not event.score >= score
        event = replace(event, end=row + 1, end_time=time)
        if louder:
            calibration = self._model.calibration
            rare = max(float(calibration.tail.probability(score)), LEAST)
            event = replace(event, peak=row, peak_time=time, score=score, signal="score",
                            ratio=1 + score - self.threshold, probability=rare,
                            normal_rows=calibration.n_rows, severity=severity(rare))  # fmt: skip
        self._open = event
        if self._reported or event.rows < self._rules.min_length or event.start < self._quiet_until:
            return []
        self._reported = True
        self._open = self._blamed(event, later)
        return [Change("open", self._open, row=row)]

    def _over(self) -> list[Change]:
        assert self._open is not None
        event, self._open = self._open, None
        if not self._reported:
            return []
        if self._rules.cooldown:
            self._quiet_until = event.end + self._rules.cooldown
        return [Change("resolve", event, row=self._n)]

    def _blamed(self, event: Event, later: int) -> Event:
        kept = self._rows.last(RECENT + later)
        kept = kept[: len(kept) - later]
        start = max(len(kept) - event.rows, 0)
        model = self._model
        nats = model.alarm.cell_nats(kept, start)
        found = suspicion(kept, start, len(kept), model.normal, model.drift_range, nats)
        named = blame(model.channels, np.where(model.alarm.watched, found, 0.0))
        shares = named.top(len(named.names))
        groups = groups_of(shares, model.config.components)
        return replace(event.with_blame(shares), groups=groups)

    def finish(self) -> tuple[Change, ...]:
        """Resolve what is open at the end."""
        return tuple(self._over()) if self._open is not None else ()

    def suppress(self) -> None:
        """What is open is normal: it says no more."""
        self._open = None

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        counts = np.array([self._n, self._reported, self._quiet_until], np.int64)
        return {"rows": self._rows.last(RECENT).copy(), "counts": counts}

    def description(self) -> dict[str, Any] | None:
        """The open event as plain values; None without one."""
        return None if self._open is None else plain_event(self._open)

    def resume(self, state: Mapping[str, NDArray[Any]], event: Mapping[str, Any] | None) -> None:
        """Take back a state."""
        if state["rows"].shape[1:] != (len(self._model.channels),):
            raise ValueError(f"its last rows have the shape {state['rows'].shape}")
        self._rows.refill(state["rows"].copy())
        n, reported, self._quiet_until = (int(x) for x in state["counts"])
        self._n, self._reported = n, bool(reported)
        self._open = None if event is None else restored_event(event)
