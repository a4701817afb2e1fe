"""Idle rows, neither trained on nor scored: the machine is off or under maintenance.

One rule, from the settings, decides it for training, tables, chunks and live rows alike. Whether a
machine is off is a condition on its row; a row in which that value is missing
takes the state of the row before. Maintenance windows are given as times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.errors import InputError
from vace_ad.frames.calendar import is_calendar
from vace_ad.frames.columns import column_of, no_column, words_of
from vace_ad.frames.segments import LARGEST, run_edges
from vace_ad.frames.spans import Span, parse_range, rows_of
from vace_ad.frames.where import Answer, Rows, columns_of, condition
from vace_ad.settings import option

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
OFF, MAINTENANCE = "off", "maintenance"


class Stretch(NamedTuple):
    """Rows [start, end) that are not judged."""

    kind: str  # OFF or MAINTENANCE
    start: int
    end: int


class IdleRule:
    """When a machine is off or under maintenance, by the settings."""

    def __init__(
        self, config: VACEConfig, channels: Sequence[str], faults: Sequence[Span] = ()
    ) -> None:
        """`faults` are past ones, whose rows are left out too: for training."""
        self.channels, self._config, self._faults = tuple(channels), config, tuple(faults)
        self._off: Rows | None = None
        if config.off is not None:
            states = {column_of(name): True for name in channels if column_of(name)}
            columns = {**states, **dict.fromkeys(channels, False)}
            self._off = condition(config.off, columns, "off")
        self._windows: dict[str | None, NDArray[np.datetime64]] = {}

    @property
    def given(self) -> bool:
        """Whether any row can be idle."""
        return self._off is not None or bool(self._config.maintenance or self._faults)

    def off(self, rows: Array) -> Answer:
        """Which of these rows mean that the machine is off, and which that it runs."""
        if self._off is None:
            return Answer(np.zeros(len(rows), bool), np.ones(len(rows), bool))
        return self._off(lambda name: self._column(rows, name))

    def _column(self, rows: Array, name: str) -> NDArray[Any]:
        if name not in self.channels:
            return words_of(rows, self.channels, name)
        values = rows[:, self.channels.index(name)]
        return np.where(np.abs(values) <= LARGEST, values, np.nan)

    def maintenance(self, time: NDArray[np.datetime64] | None, n: int, zone: str | None) -> Bools:
        """Which of these rows lie in a planned window, or in a past fault, (n,)."""
        if not self._config.maintenance and not self._faults:
            return np.zeros(n, bool)
        if time is None:
            raise InputError(
                f"{option('maintenance')} and labels need times, and these rows have none; give "
                "them a time column"
            )
        inside = np.zeros(n, bool)
        for start, end in self.windows(zone):
            inside |= (time >= start) & (time < end)
        for a, b in rows_of(self._faults, time, zone):
            inside[a:b] = True
        return inside

    def windows(self, zone: str | None) -> NDArray[np.datetime64]:
        """The begin and the end (n, 2) of the planned windows."""
        if zone not in self._windows:
            self._windows[zone] = window_times(self._config.maintenance, zone)
        return self._windows[zone]

    @cached_property
    def run_up(self) -> int:
        """Rows after a standstill that count as off too."""
        return self._config.run_up if self._off is not None else 0

    @cached_property
    def run_down(self) -> int:
        """Rows before a standstill that are not judged either."""
        return self._config.run_down if self._off is not None else 0


def window_times(windows: Sequence[str], zone: str | None) -> NDArray[np.datetime64]:
    """The begin and the end (n, 2) of windows `FROM..TO`."""
    found = [parse_range("maintenance", text, zone) for text in windows]
    return np.array(found, "datetime64[ns]").reshape(-1, 2)


class Idle(NamedTuple):
    """Which rows are idle, (n,) each."""

    off: Bools  # run-up included
    maintenance: Bools

    @property
    def any(self) -> Bools:
        """Either."""
        return self.off | self.maintenance

    def stretches(self, first: int = 0) -> tuple[Stretch, ...]:
        """The idle rows as stretches, in order; maintenance counts before off."""
        kinds = ((MAINTENANCE, self.maintenance), (OFF, self.off & ~self.maintenance))
        found = [
            Stretch(kind, first + a, first + b)
            for kind, rows in kinds
            for a, b in run_edges(rows).tolist()
        ]
        return tuple(sorted(found, key=lambda one: one.start))


class IdleTracker:
    """Applies the rule to rows as they come; the same answer whatever the chunks."""

    def __init__(self, rule: IdleRule) -> None:
        self._rule = rule
        self._still = False  # whether the last row stood still
        self._left = 0  # rows of the run-up that are still to come

    def add(
        self, rows: Array, time: NDArray[np.datetime64] | None, zone: str | None = None
    ) -> Idle:
        """Which of the next rows (n, n_channels) are idle."""
        n = len(rows)
        planned = self._rule.maintenance(time, n, zone)
        if self._rule._off is None or not n:
            return Idle(np.zeros(n, bool), planned)
        answer = self._rule.off(rows)
        place = np.where(answer.yes | answer.no, np.arange(n), -1)
        last = np.maximum.accumulate(place)
        still = np.where(last < 0, self._still, answer.yes[last])
        row = np.arange(n)
        stood = np.maximum.accumulate(np.where(still, row, self._left - self._rule.run_up - 1))
        off = row - stood <= self._rule.run_up
        self._still = bool(still[-1])
        self._left = max(self._rule.run_up - int(n - 1 - stood[-1]), 0)
        return Idle(np.asarray(off), planned)

    def state(self) -> dict[str, NDArray[Any]]:
        """The state that changes with the rows."""
        return {"state": np.array([self._still, self._left], np.int64)}

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state."""
        still, self._left = (int(x) for x in state["state"])
        self._still = bool(still)


def idle_rows(
    rule: IdleRule, rows: Array, time: NDArray[np.datetime64] | None, zone: str | None
) -> Idle:
    """Which rows of a whole table are idle, run-down included."""
    found = IdleTracker(rule).add(rows, time, zone)
    off = found.off.copy()
    for start, _ in run_edges(found.off).tolist():
        off[max(0, start - rule.run_down) : start] = True
    return Idle(off, found.maintenance)


def word_columns(config: VACEConfig) -> list[str]:
    """Columns that may hold words: those of the context, and of the condition for off."""
    return [*config.context, *(() if config.off is None else columns_of(config.off))]


def watched(config: VACEConfig, channels: Sequence[str]) -> Bools:
    """Which channels alarm and are blamed, (n_channels,): all but the context."""
    columns = {column_of(name) for name in channels} & set(word_columns(config))
    for setting in ("context", "watch"):
        for name in getattr(config, setting):
            if name not in channels and name not in columns:
                raise no_column(name, channels, f"{option(setting)}: ")
    for name in config.components:
        if not any(name.endswith(f"/{channel}") for channel in channels):
            raise no_column(name.rpartition("/")[2], channels, f"{option('components')}: ")
    context = {*config.context, *columns}
    mine = np.array([name not in context and column_of(name) not in context for name in channels])
    mine &= np.array([not is_calendar(name) for name in channels])
    if config.watch:
        mine = np.array([name in config.watch for name in channels])
    if not mine.any():
        raise InputError(
            f"every channel is {option('context')}, so none is left to watch; take one out"
        )
    return mine
