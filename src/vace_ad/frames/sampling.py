"""The sampling interval: one rule, chosen in the fit and stored in the model, splits every series.

Tables, chunks, files and live rows are cut by it alike:

- A pause of a whole number of steps means missing rows. Up to `max_gap` of them count as rows
  without values, which are interpolated like missing cells.
- A longer pause is a jump in time: a stretch ends.
- Where the mean of the last pauses is off the pace of training by more than a quarter, rows come
  at another step than the model's, and have no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.frames.time import check_order, duration_words, off_step

Times = NDArray[np.datetime64]

IRREGULAR_STEPS = 10.0  # a pause of more is a jump in time where stamps are irregular
WINDOW = 32  # pauses whose mean is the pace
EARLY = 4  # pauses from which on the pace of regular rows is judged: jitter of ±40 % passes
TOLERANCE = 0.25  # by which the pace may be off that of training
MOST = 2.5  # steps that one pause counts at most: a few missing rows are no other step


@dataclass(frozen=True)
class Steps:
    """Missing rows, jumps and wrong steps, from the times of n rows."""

    missing: NDArray[np.int64]  # (n,), rows that are missing before each row
    jumps: NDArray[np.bool_]  # (n,), whether time jumped before it
    off: NDArray[np.bool_]  # (n,), whether rows come at another step there

    def cuts(self) -> list[int]:
        """The rows before which time jumped."""
        return [int(row) for row in np.flatnonzero(self.jumps)]

    def without(self, rows: NDArray[np.bool_]) -> Steps:
        """The same, with rows (n,) that are to have no score either."""
        return replace(self, off=self.off | rows)

    def __getitem__(self, rows: slice) -> Steps:
        return Steps(self.missing[rows], self.jumps[rows], self.off[rows])


@dataclass(frozen=True)
class StepRule:
    """How times split a series, in nanoseconds; without a step, times only have to increase."""

    step: int | None = None  # median time from row to row
    regular: bool = True  # whether training stamps keep to the step, so that rows can be missing
    max_gap: int = 0  # missing rows that are interpolated
    pace: tuple[float, float] = (0.0, np.inf)  # the least and the largest mean of pauses

    @classmethod
    def of(cls, times: Sequence[Times | None], max_gap: int) -> Self:
        """Derive the rule from the times of training tables."""
        pauses = [np.diff(time).astype(np.int64) for time in times if time is not None]
        every = np.concatenate([np.empty(0, np.int64), *pauses])
        if not len(every) or np.median(every) <= 0:  # StepTracker refuses such times
            return cls(max_gap=max_gap)
        step, _, regular = off_step(every)
        rule = cls(round(step), regular, max_gap)
        means = [rule.means(each)[WINDOW - 1 :] for each in pauses]
        seen = np.concatenate([np.array([step]), *means])
        pace = (1 - TOLERANCE) * float(seen.min()), (1 + TOLERANCE) * float(seen.max())
        return cls(round(step), regular, max_gap, pace)

    @property
    def longest(self) -> float:
        """The longest pause that is no jump in time."""
        if self.step is None:
            return np.inf
        filled = self.max_gap + 1.5
        return self.step * (filled if self.regular else max(filled, IRREGULAR_STEPS))

    def missing(self, pauses: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many rows are missing within each pause, (n,); irregular rows are never."""
        if self.step is None or not self.regular:
            return np.zeros(len(pauses), np.int64)
        _, off, _ = off_step(pauses, self.step)
        count = np.round(pauses / self.step).astype(np.int64) - 1
        return np.where(off | (pauses > self.longest), 0, np.maximum(count, 0))

    def means(self, pauses: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean of the last pauses up to each, (n,): single jumps in time do not count."""
        assert self.step is not None
        far = pauses > self.longest
        again = far & np.concatenate([[False], far[:-1]])
        most = round(MOST * self.step)
        counted = np.where(far, np.where(again, most, self.step), np.minimum(pauses, most))
        total = np.concatenate([[0], np.cumsum(counted)])
        end = np.arange(1, len(pauses) + 1)
        start = np.maximum(end - WINDOW, 0)
        return np.asarray((total[end] - total[start]) / (end - start))


class StepTracker:
    """Applies the rule to rows as they come; the same answer whatever the chunks."""

    def __init__(self, rule: StepRule) -> None:
        self._rule = rule
        self._last: Times = np.empty(0, "datetime64[ns]")  # the time of the last row
        self._pauses = np.empty(0, np.int64)  # the last ones
        self._n = 0  # rows so far
        self._step: float | None = None  # the present one, where it is another

    @property
    def last(self) -> np.datetime64 | None:
        """The time of the last row."""
        return self._last[0] if len(self._last) else None

    @property
    def trouble(self) -> str | None:
        """A message where rows come at another step than in training; else None."""
        if self._step is None or self._rule.step is None:
            return None
        own, other = duration_words(self._rule.step), duration_words(self._step)
        return (
            f"they come every {other}, and the model was fitted on rows every {own}; bring them "
            "to that step, or fit a model on rows like these"
        )

    def add(self, time: Times | None, n: int) -> Steps:
        """Examine the times of the next n rows; refuse times that do not increase."""
        none = np.zeros(n, bool)
        found = Steps(np.zeros(n, np.int64), none, none.copy())
        if time is None or not n:
            return found
        known = np.concatenate([self._last, time.astype("datetime64[ns]")])
        check_order(known, strict=True, first=self._n - len(self._last))
        pauses = np.diff(known).astype(np.int64)
        self._last, rule = known[-1:], self._rule
        self._n += n
        if rule.step is None or not len(pauses):
            return found
        new = slice(n - len(pauses), None)
        found.missing[new] = rule.missing(pauses)
        found.jumps[new] = pauses > rule.longest
        found.off[new] = self._off(pauses)
        return found

    def _off(self, pauses: NDArray[np.int64]) -> NDArray[np.bool_]:
        """After which pauses rows come at another step."""
        before = len(self._pauses)
        recent = np.concatenate([self._pauses, pauses])
        mean = self._rule.means(recent)[before:]
        count = self._n - len(pauses) + np.arange(len(pauses))  # of pauses up to each
        low, high = self._rule.pace
        judged = count >= (EARLY if self._rule.regular else WINDOW)
        off = judged & ((mean < low) | (mean > high))
        self._pauses = recent[-WINDOW - 1 :]  # one more tells whether two jumps followed each other
        self._step = float(np.median(self._pauses)) if off[-1] else None
        return np.asarray(off)

    def state(self) -> dict[str, NDArray[Any]]:
        """The state that changes with the rows."""
        return {
            "last": self._last.view(np.int64),
            "pauses": self._pauses,
            "n": np.array([self._n]),
            "step": np.array([np.nan if self._step is None else self._step]),
        }

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state."""
        self._last = state["last"].view("datetime64[ns]")[:1]
        self._pauses, self._n = state["pauses"].astype(np.int64), int(state["n"][0])
        step = float(state["step"][0])
        self._step = None if np.isnan(step) else step


def with_missing(
    rows: NDArray[np.float64], steps: Steps
) -> tuple[NDArray[np.float64], Steps, NDArray[np.bool_] | None]:
    """Rows of NaN put in where rows are missing, and which rows are real; None for all."""
    if not steps.missing.any():
        return rows, steps, None
    at = np.repeat(np.arange(len(rows)), steps.missing)
    real = np.insert(np.ones(len(rows), bool), at, False)
    jumps = np.insert(steps.jumps, at, False)
    off = np.insert(steps.off, at, steps.off[at])  # as the row after them
    none = np.zeros(len(real), np.int64)
    return np.insert(rows, at, np.nan, axis=0), Steps(none, jumps, off), real
