"""What alarms were worth by strict rules: an alarm must lie on what it claims to find.

An alarm counts for a labelled stretch only if a quarter of its rows lie within 48 rows of labelled
stretches, so one endless alarm finds nothing; every other alarm is false. Counts say nothing alone:
found stands beside false alarms, normal rows inside alarms, onset and overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from record import Line

from vace_ad.metrics.events import find_events
from vace_ad.metrics.operating import TOLERANCE

PROPER = 0.25  # of an alarm's rows that must lie near labelled stretches
RATE = 1e-4  # false alarms a row that are allowed
Range = tuple[int, int]  # rows [start, end)


@dataclass(frozen=True)
class Judged:
    """Counts of one or more series; `+` adds them up."""

    series: int
    events: int  # labelled stretches
    found: int  # of them, with a proper alarm near
    false_alarms: int
    allowed: float
    inside_rows: int  # normal rows inside alarms
    normal_rows: int
    onsets: tuple[int, ...]  # of found stretches: rows from their start to that of the alarm
    overlaps: tuple[float, ...]  # of all stretches: intersection over union with the best alarm

    def __add__(self, other: Judged) -> Judged:
        """Counts of both."""
        return Judged(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def line(self) -> Line:
        """Cells of a table."""
        onsets = np.array(self.onsets)
        return {
            "series": self.series,
            "events": self.events,
            "found": self.found,
            "false_alarms": self.false_alarms,
            "allowed": f"{self.allowed:.1f}",
            "normal_rows_in_alarms": f"{self.inside_rows / max(self.normal_rows, 1):.4f}",
            "onset_median": f"{np.median(onsets):+.0f}" if self.onsets else "",
            "onset_within_8": f"{np.mean(np.abs(onsets) <= 8):.2f}" if self.onsets else "",
            "overlap": f"{np.mean(self.overlaps):.2f}" if self.overlaps else "",
        }


def judge(alarms: Sequence[Range], labels: NDArray[np.int_]) -> Judged:
    """Count the alarms of one series by its labels (n_rows,)."""
    stretches = list(zip(*(rows.tolist() for rows in find_events(labels)), strict=True))
    proper, inside, normal = proper_alarms(alarms, stretches, len(labels))
    onsets, overlaps = [], []
    for start, end in stretches:
        mine = [(a, b) for a, b in proper if a < end + TOLERANCE and b > start - TOLERANCE]
        if mine:
            onsets.append(min(a for a, _ in mine) - start)
        overlaps.append(overlap(max(mine, key=lambda m: common(m, (start, end))), (start, end))
                        if mine else 0.0)  # fmt: skip
    false = len(alarms) - len(proper)
    allowed = RATE * len(labels)
    return Judged(
        1, len(stretches), len(onsets), false, allowed, inside, normal,
        tuple(onsets), tuple(overlaps),
    )  # fmt: skip


def proper_alarms(
    alarms: Sequence[Range], stretches: Sequence[Range], n_rows: int
) -> tuple[list[Range], int, int]:
    """Alarms that lie on stretches, normal rows inside any alarm, and normal rows."""
    near, inside = np.zeros(n_rows, np.bool_), np.zeros(n_rows, np.bool_)
    for start, end in stretches:
        near[max(0, start - TOLERANCE) : end + TOLERANCE] = True
    for start, end in alarms:
        inside[start:end] = True
    proper = [(a, b) for a, b in alarms if near[a:b].sum() >= PROPER * (b - a)]
    return proper, int((inside & ~near).sum()), int((~near).sum())


def common(one: Range, other: Range) -> int:
    """Rows that both have; negative where they lie apart."""
    return min(one[1], other[1]) - max(one[0], other[0])


def overlap(one: Range, other: Range) -> float:
    """Intersection over union."""
    return max(0, common(one, other)) / (max(one[1], other[1]) - min(one[0], other[0]))
