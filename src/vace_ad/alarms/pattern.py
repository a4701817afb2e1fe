"""The pattern of an accepted range: the deviation of each channel from its recent past.

A pattern is kept in the channels' own units, so it outlives the model that it was found with. It
holds only the channels that left their past farther than any did in training: all others are left
to the detector, so a fault in one of them is seen as ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.alarms.constants import LOW_PRICE, MOST_NATS
from vace_ad.alarms.suspects import LEVEL_SHARE, DriftRange
from vace_ad.errors import FeedbackError
from vace_ad.frames.segments import missing_cells
from vace_ad.signals.baseline_model import Normal

Array = NDArray[np.float64]

BEFORE = 60  # rows before a stretch that it is held against
REACH = 48  # rows by which a pattern may grow beyond the stretch that was named
POINTS = 256  # of a profile at most; a longer pattern is thinned
LEAST = 1.5  # training drifts that some channel of a pattern exceeds, and where it begins
TAIL = 1.0  # the same where it ends
RATIO, MOST_RATIO = 3.0, 1e6  # of a stretch that no alarm gave; at most
ALLOWED, WITHIN = 0.5, (2.5, 4.0)  # share of the excess over the limit that is tolerated; bounds
# Times as much is tolerated of the channels of the pattern, which are only roughly taken out: what
# is left in one of their cells never adds up.
OWN = MOST_NATS / (WITHIN[0] * LOW_PRICE)
MOST_CHANNELS, LONGEST_NAME, LONGEST, LARGEST = 2_000, 500, 10_000_000, 1e100


@dataclass(frozen=True)
class Pattern:
    """How channels left their past, from the first row to the last."""

    id: str
    length: int  # rows
    channels: tuple[str, ...]
    profile: Array  # (n_points, n_channels), in the channels' own units
    ratio: float = RATIO  # evidence over its limit that the accepted stretch had

    @property
    def allowance(self) -> float:
        """Evidence over its limit that is tolerated during the pattern and just after.

        What it explains is taken out of the rows, but its edges leave traces.
        """
        return float(np.clip(1 + ALLOWED * (self.ratio - 1), *WITHIN))

    @classmethod
    def of(
        cls,
        id: str,
        values: NDArray[Any],  # (n_rows, n_channels)
        rows: tuple[int, int],  # the stretch, [start, end)
        names: Sequence[str],
        normal: Normal,
        drift_range: DriftRange,
        ratio: float = float("nan"),
    ) -> Self | None:
        """The pattern of a stretch of a table; None where no channel left its past.

        The stretch grows on either side while the channels are still away.
        """
        low, high = max(0, rows[0] - REACH - BEFORE), min(len(values), rows[1] + REACH)
        known = filled(values[low:high], normal.mean)
        start, end = rows[0] - low, rows[1] - low
        away, unit = _away(known, start, normal, drift_range)
        loud = _smoothed(away[start:end] / unit)
        chosen = np.flatnonzero(np.abs(loud).max(axis=0) >= LEAST)
        if not len(chosen):
            return None
        out = np.asarray((np.abs(away[:, chosen]) >= TAIL * unit[chosen]).any(axis=1))
        start, end = _grown(out, start, end)
        away, unit = _away(
            known, start, normal, drift_range
        )  # held against the rows before the onset
        profile = _smoothed(away[start:end, chosen])
        size = (np.abs(profile) / unit[chosen]).max(axis=1)  # (n_rows,)
        clear, rest = np.flatnonzero(size >= LEAST), np.flatnonzero(size >= TAIL)
        if not len(clear):
            return None
        profile = profile[clear[0] : rest[-1] + 1]  # a begin must be clear, an end need not
        places = np.linspace(0, len(profile) - 1, min(POINTS, len(profile))).round().astype(np.intp)
        strength = min(ratio, MOST_RATIO) if ratio >= 1 else RATIO
        channels = tuple(names[i] for i in chosen.tolist())
        return cls(id, len(profile), channels, profile[places], strength)

    def to_plain(self) -> dict[str, Any]:
        """As JSON knows it, with six digits a number."""
        lines = self.profile.T.tolist()
        return {
            "rows": self.length,
            "ratio": round(self.ratio, 3),
            "channels": {
                name: [float(f"{x:.6g}") for x in line]
                for name, line in zip(self.channels, lines, strict=True)
            },
        }

    @classmethod
    def from_plain(cls, id: str, plain: Any) -> Self:
        """The reverse of `to_plain`; refuses what no stretch gives."""
        if not isinstance(plain, Mapping) or set(plain) != {"rows", "ratio", "channels"}:
            raise FeedbackError("a pattern must hold 'rows', 'ratio' and 'channels', and no more")
        length, ratio, lines = plain["rows"], plain["ratio"], plain["channels"]
        if not _is_number(ratio) or not 1 <= ratio <= MOST_RATIO:
            raise FeedbackError(f"a pattern's ratio must be a number from 1 to {MOST_RATIO:g}")
        if type(length) is not int or not 1 <= length <= LONGEST:
            raise FeedbackError(f"a pattern has {length!r} rows; 1 to {LONGEST:,} are possible")
        if not isinstance(lines, Mapping) or not 1 <= len(lines) <= MOST_CHANNELS:
            raise FeedbackError(f"a pattern must name 1 to {MOST_CHANNELS:,} channels")
        for name, line in lines.items():
            if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
                raise FeedbackError(
                    f"a pattern's channel has no name of 1 to {LONGEST_NAME} characters"
                )
            if not isinstance(line, list) or not 1 <= len(line) <= min(POINTS, length):
                raise FeedbackError(f"the pattern of {name!r} must be 1 to {POINTS} numbers")
            if not all(_is_number(x) for x in line):
                raise FeedbackError(f"the pattern of {name!r} holds something that is no number")
        if len({len(line) for line in lines.values()}) != 1:
            raise FeedbackError("the channels of a pattern must have equally many numbers")
        profile = np.array(list(lines.values()), np.float64).T
        return cls(id, length, tuple(lines), profile, float(ratio))


def drift_distance(normal: Normal, drift_range: DriftRange, middle: Array) -> Array:
    """The farthest that a row of training went from its past, (n_channels,)."""
    floor = LEVEL_SHARE * np.abs(middle) + 1e-9 * normal.scale
    return np.asarray(drift_range.largest[0] + floor)


def filled(values: NDArray[Any], otherwise: Array) -> Array:
    """Values as float64; a missing cell has the last known value of its channel."""
    gone = missing_cells(values)
    known = np.where(gone, np.nan, values).astype(np.float64)
    for c in np.flatnonzero(gone.any(axis=0)).tolist():
        last = np.maximum.accumulate(np.where(gone[:, c], -1, np.arange(len(known))))
        known[:, c] = np.where(last < 0, otherwise[c], known[last, c])
    return known


def _away(rows: Array, start: int, normal: Normal, drift_range: DriftRange) -> tuple[Array, Array]:
    """How far rows lie from the median of those before `start`, and their drift in training."""
    before = rows[max(0, start - BEFORE) : start]
    middle = np.median(before, axis=0) if len(before) else normal.mean
    return rows - middle, drift_distance(normal, drift_range, middle)


def _grown(out: NDArray[np.bool_], start: int, end: int) -> tuple[int, int]:
    """The stretch, longer on either side by the rows that are still away, REACH at most."""
    first, last = max(0, start - REACH), min(len(out), end + REACH)
    while start > first and out[start - 1]:
        start -= 1
    while end < last and out[end]:
        end += 1
    return start, end


def _smoothed(rows: Array) -> Array:
    """Running medians of five rows, three or one: noise goes, steps stay."""
    width = 5 if len(rows) >= 10 else 3 if len(rows) >= 5 else 1
    padded = np.pad(rows, ((width // 2, width // 2), (0, 0)), mode="edge")
    return np.asarray(np.median(sliding_window_view(padded, width, axis=0), axis=2))


def _is_number(x: Any) -> bool:
    return type(x) in (int, float) and math.isfinite(x) and abs(x) <= LARGEST
