"""What alarms were worth against past faults: found or missed, and how long before the failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

WEEK = np.timedelta64(7 * 86_400 * 10**9, "ns")


@dataclass(frozen=True)
class Warned:
    """One past fault, from its first sign to the failure, and the first alarm about it."""

    start: np.datetime64
    end: np.datetime64  # the failure
    alarm: np.datetime64 | None  # when it could be known; None: missed
    code: str = ""

    @property
    def forewarning(self) -> np.timedelta64 | None:
        """Time from the alarm to the failure; None where there was none before it."""
        return None if self.alarm is None or self.alarm > self.end else self.end - self.alarm

    def to_plain(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        lead = self.forewarning
        return {
            "start": str(self.start),
            "end": str(self.end),
            "code": self.code,
            "found": self.alarm is not None,
            "alarm": None if self.alarm is None else str(self.alarm),
            "forewarning_seconds": None if lead is None else float(lead / np.timedelta64(1, "s")),
        }


@dataclass(frozen=True)
class Forewarning:
    """Past faults found and missed, and the alarms that none of them explains."""

    faults: tuple[Warned, ...]
    false_alarms: int
    weeks: float  # of judged time without a fault

    @property
    def found(self) -> int:
        """Faults with an alarm."""
        return sum(one.alarm is not None for one in self.faults)

    @property
    def false_alarms_per_week(self) -> float | None:
        """None where no time without a fault was judged."""
        return self.false_alarms / self.weeks if self.weeks else None

    @property
    def median_seconds(self) -> float | None:
        """The median time from alarm to failure, of faults that were alarmed before it."""
        known = [one.forewarning for one in self.faults if one.forewarning is not None]
        return float(np.median(np.array(known) / np.timedelta64(1, "s"))) if known else None

    def to_plain(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "faults": [one.to_plain() for one in self.faults],
            "found": self.found,
            "missed": len(self.faults) - self.found,
            "forewarning_median_seconds": self.median_seconds,
            "false_alarms": self.false_alarms,
            "false_alarms_per_week": self.false_alarms_per_week,
        }


def forewarning(
    time: NDArray[np.datetime64],
    faults: Sequence[tuple[int, int]],
    alarms: Sequence[tuple[int, int, int]],
    *,
    codes: Sequence[str] = (),
    judged: NDArray[np.bool_] | None = None,
    step: int | None = None,
) -> Forewarning:
    """Compare alarms with past faults.

    Parameters
    ----------
    time
        Of each row, (n_rows,), in order.
    faults
        Rows [start, end) of each fault, from its first sign to the failure; empty ones, of which
        the table has no row, are passed over.
    alarms
        Rows [start, end) of each event, and the row at which it was known.
    codes
        Of the faults.
    judged
        Which rows could alarm, (n_rows,); all by default.
    step
        Nanoseconds from row to row; the median by default.

    Examples
    --------
    >>> import numpy as np
    >>> time = np.datetime64("2026-01-01", "ns") + np.arange(100) * np.timedelta64(1, "h")
    >>> found = forewarning(time, [(40, 60), (80, 90)], [(45, 55, 48), (10, 12, 11)])
    >>> found.found, found.false_alarms, found.median_seconds
    (1, 1, 39600.0)
    """
    labels = [*codes, *[""] * (len(faults) - len(codes))]
    free = np.ones(len(time), bool) if judged is None else judged.copy()
    explained, warned = set[int](), []
    for (start, end), code in zip(faults, labels, strict=True):
        if start >= end or not free[start:end].any():
            continue
        near = [i for i, (a, b, _) in enumerate(alarms) if a < end and b > start]
        explained.update(near)
        first = min((alarms[i][2] for i in near), default=None)
        at = None if first is None else time[first]
        warned.append(Warned(time[start], time[end - 1], at, code))
    for start, end in faults:
        free[start:end] = False
    if step is None:
        step = int(np.median(np.diff(time).astype(np.int64))) if len(time) > 1 else 0
    weeks = float(free.sum() * np.timedelta64(step, "ns") / WEEK)
    return Forewarning(tuple(warned), len(alarms) - len(explained), weeks)
