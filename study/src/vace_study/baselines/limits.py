"""Alarms of a detector without any: a limit from its own training scores.

The limit is the lowest score above which the training rows raise no more alarms than the budget
allows them, where one that lasts counts again every `GAP` rows: else the lowest limit of all, with
a single alarm that never ends, would do. Rows above the limit that lie within `GAP` rows of each
other are one alarm, which a live chart raises at the first: the scores here need no later row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.budget import Budget
from vace_ad.errors import ConfigError
from vace_ad.metrics.operating import TOLERANCE

Array = NDArray[np.float64]

GAP = TOLERANCE  # rows: what the measures take for one event is one alarm


class Alarm(NamedTuple):
    """Rows [start, end) of an alarm, and the row at which it is raised."""

    start: int
    end: int
    alarm: int


class Change(NamedTuple):
    """What a live chart says of an alarm."""

    what: str
    event: Alarm


@dataclass(frozen=True)
class Alarms:
    """What was found in a table, or in the newest rows of a live chart."""

    anomalies: list[Alarm]

    @property
    def changes(self) -> list[Change]:
        """The same, as a live chart tells it."""
        return [Change("open", alarm) for alarm in self.anomalies]


@dataclass(frozen=True)
class Blame:
    """Channels by their share in the statistic, largest first."""

    names: list[str]
    shares: Array  # (n_channels,)

    def top(self, n: int) -> list[tuple[str, float]]:
        """The first few."""
        order = np.argsort(-self.shares, kind="stable")[:n]
        return [(self.names[i], float(self.shares[i])) for i in order]


class LimitAlarms:
    """`detect`, `stream` and `explain` for a detector with `score` and `contributions`.

    `fit` must leave the scores of the training rows in `training_scores_`.
    """

    training_scores_: Array

    def score(self, table: Array, /) -> Array:
        """Score every row; the detector's own."""
        raise NotImplementedError

    def contributions(self, table: Array, /) -> Array:
        """How much each channel adds to the score of each row; the detector's own. (n, C)."""
        raise NotImplementedError

    def detect(self, data: Array, *, budget: Any = None, step: int | None = None) -> Alarms:
        """The alarms of a table."""
        limit = self._limit(Budget.of(budget), step)
        return Alarms(merged(np.flatnonzero(self.score(data) > limit)))

    def stream(self, *, budget: Any = None) -> LimitStream:
        """A chart that is fed as rows come."""
        return LimitStream(self, Budget.of(budget))

    def explain(self, data: Array, start: int, end: int) -> Blame:
        """Channels by their mean contribution to the rows [start, end)."""
        shares = self.contributions(data)[start:end].mean(axis=0)
        return Blame([str(i) for i in range(len(shares))], shares)

    def _limit(self, budget: Budget, step: int | None) -> float:
        rate = budget.rate(step)
        if rate is None:
            raise ConfigError(
                f"a budget per {budget.per} came; a chart takes one in rows or time, such as "
                "'1 in 10000 rows'"
            )
        return limit_for(self.training_scores_, rate)


@dataclass
class LimitStream:
    """A live chart. It scores all rows again with each call: feed it many at a time."""

    detector: LimitAlarms
    budget: Budget
    rows: list[Array] = field(default_factory=list)
    known: int = 0  # alarms told so far

    def add(self, rows: Array) -> Alarms:
        """The alarms that these rows raise."""
        self.rows.append(rows)
        found = self.detector.detect(np.concatenate(self.rows), budget=self.budget).anomalies
        fresh, self.known = found[self.known :], len(found)
        return Alarms(fresh)

    def finish(self) -> Alarms:
        """Nothing is held back."""
        return Alarms([])


def merged(rows: NDArray[np.intp]) -> list[Alarm]:
    """Alarms of rows above a limit, those with at most `GAP` rows between them as one."""
    if not rows.size:
        return []
    breaks = np.flatnonzero(np.diff(rows) > GAP + 1)
    starts = rows[np.append(0, breaks + 1)]
    ends = rows[np.append(breaks, rows.size - 1)] + 1
    return [Alarm(int(a), int(b), int(a)) for a, b in zip(starts, ends, strict=True)]


def limit_for(scores: Array, rate: float) -> float:
    """The lowest of these scores above which they raise at most `rate` alarms a row."""
    allowed = int(rate * len(scores))
    falling = np.unique(scores)[::-1]
    low, high = 0, len(falling) - 1  # limits up to `low` are high enough
    while low < high:
        middle = (low + high + 1) // 2
        above = np.flatnonzero(scores > falling[middle])
        low, high = (middle, high) if _few(above, allowed) else (low, middle - 1)
    return float(falling[low])


def _few(rows: NDArray[np.intp], allowed: int) -> bool:
    """Whether so many stretches of `GAP` rows cover all these rows."""
    at = 0
    for _ in range(allowed):
        if at < rows.size:
            at = int(np.searchsorted(rows, rows[at] + GAP))
    return at >= rows.size
