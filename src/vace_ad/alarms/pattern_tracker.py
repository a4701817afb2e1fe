"""Tracks one pattern along rows: at which point of its profile the current row may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.pattern import Pattern, drift_distance
from vace_ad.alarms.suspects import DriftRange
from vace_ad.signals.baseline_model import Normal

Array = NDArray[np.float64]

START = 1.4  # training drifts that a channel must exceed for a pattern to begin
TOLERANCE = 0.25  # of the pattern's distance that a row may lie off, besides the training drift
WAY = 0.5  # training drifts that all channels of the first point exceed where it may begin
SLACK = 0.25  # of its length that a pattern may run early or late
LEAST_SLACK = 2  # rows
FASTER = 2  # points of the profile that a row may go forward at most


class Follower:
    """A pattern and the places of its profile that fit the rows so far."""

    def __init__(
        self, pattern: Pattern, channels: Sequence[str], normal: Normal, drift_range: DriftRange
    ) -> None:
        self.pattern = pattern
        self.columns = np.array([channels.index(name) for name in pattern.channels], np.intp)
        self.active = False
        self.rested = True  # whether its channels have been back since it was seen last
        self.start = self.elapsed = 0  # row of its begin, rows since
        self.places = np.zeros(len(pattern.profile), bool)  # where the last row may have been
        self.shift = np.zeros(len(self.columns))  # of the baseline level against one period ago
        self.lead = np.zeros(len(self.columns))  # how far the last row before had gone already
        self._normal, self._drift_range = normal, drift_range
        points = len(pattern.profile)
        self._rows = np.arange(points) * (pattern.length / points)  # row of each point
        self._slack = max(LEAST_SLACK, SLACK * pattern.length)
        self.frame(normal.mean[self.columns])

    def frame(self, middle: Array) -> None:
        """Compare rows with this median (n_columns,)."""
        full = self._normal.mean.copy()
        full[self.columns] = middle
        self.middle = middle
        self.unit = drift_distance(self._normal, self._drift_range, full)[self.columns]
        self._allowed = self.unit + TOLERANCE * np.abs(self.pattern.profile)

    def may_begin(self, row: Array) -> bool:
        """Whether a row (n_columns,) is on its way to the pattern's first point."""
        first = self.pattern.profile[0]
        loud = np.abs(first) >= self.unit
        way = (row - self.middle) * np.sign(first) / self.unit  # NaN is on its way
        return bool(loud.any()) and not bool((way[loud] < WAY).any())

    def step(self, row: Array, n: int) -> float | None:
        """How far row n (n_columns,) lies off its place, 0 to 1; None where it fits none.

        A missing cell fits everywhere, a row without any cell nowhere.
        """
        away = row - self.middle
        known = ~np.isnan(away)
        if not known.any():
            return None
        off = np.abs(np.where(known, away - self.pattern.profile, 0.0)) / self._allowed
        worst = off.max(axis=1)  # (n_points,)
        fits = (worst <= 1) & self._reachable(away)
        if not fits.any():
            return None
        if not self.active:
            self.active, self.start, self.elapsed = True, n, 0
        self.places, self.elapsed = fits, self.elapsed + 1
        return float(worst[fits].min())

    def _reachable(self, away: Array) -> NDArray[np.bool_]:
        """The points that this row may lie at, after where the last one was."""
        if not self.active:
            gone = bool((np.abs(np.nan_to_num(away)) >= START * self.unit).any())
            self.rested = self.rested or not gone
            return np.asarray((np.arange(len(self._rows)) <= FASTER) & gone & self.rested)
        forward = self.places.copy()
        for k in range(1, FASTER + 1):
            forward[k:] |= self.places[:-k]
        return np.asarray(forward & (np.abs(self._rows - self.elapsed) <= self._slack))

    def end(self) -> tuple[int, int] | None:
        """The pattern is over; the rows that it explained, if they were more than a few."""
        if not self.active:
            return None
        self.active = self.rested = False
        if self.elapsed < min(self._slack, self.pattern.length):
            return None
        return self.start, self.start + self.elapsed

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        return {
            "counts": np.array([self.active, self.rested, self.start, self.elapsed]),
            "places": self.places.astype(np.uint8),
            "lines": np.stack([self.middle, self.shift, self.lead]),
        }

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state of the same pattern."""
        active, rested, self.start, self.elapsed = (int(x) for x in state["counts"])
        self.active, self.rested = bool(active), bool(rested)
        places, lines = state["places"], state["lines"]
        if places.shape != self.places.shape or lines.shape != (3, len(self.columns)):
            raise ValueError("it is not of this pattern")
        self.places = places.astype(bool)
        self.shift, self.lead = lines[1], lines[2]
        self.frame(lines[0])
