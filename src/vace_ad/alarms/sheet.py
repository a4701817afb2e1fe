"""One verdict on the training data: a grade for each sensor, one for the whole, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.frames.segments import missing_cells, run_edges
from vace_ad.frames.table import Table
from vace_ad.signals.baseline_model import medians, quantile

Array = NDArray[np.float64]
GOOD, USABLE, POOR = "good", "usable", "poor"
GRADES = (GOOD, USABLE, POOR)

MOST_ROWS = 20_000  # looked at, evenly spaced
SWITCH = 10  # values up to which a sensor is a switch
_MISSING = (0.05, 0.3)  # shares of missing cells from which on a sensor is usable, poor
_STUCK = 0.1  # of all rows in one run of a repeated value
_FAR = 12.0  # robust deviations of an outlier
_OUTLIERS = 0.01  # of all rows; more of them are a mode
_GAP, _MODE = 0.2, 0.05  # of the range without a value, and of the rows on either side of it


@dataclass(frozen=True)
class Sensor:
    """One sensor's grade, and what was found."""

    name: str
    grade: str
    found: tuple[str, ...] = ()  # in words


@dataclass(frozen=True)
class Sheet:
    """The grades of all sensors, and of the whole."""

    grade: str
    why: str
    sensors: tuple[Sensor, ...]

    def to_plain(self) -> dict[str, Any]:
        """Plain values, for the facts of a fit."""
        return {
            "grade": self.grade,
            "why": self.why,
            "sensors": [
                {"name": one.name, "grade": one.grade, "found": list(one.found)}
                for one in self.sensors
            ],
        }


def sheet(
    tables: Sequence[Table],
    parts: Sequence[Array],
    drifting: NDArray[np.bool_],
    notes: Sequence[str],
) -> Sheet:
    """Look at training tables, and at the complete stretches (n, n_channels) that they gave.

    `drifting` says which channels drift, (n_channels,); `notes` are the kinds of what else is
    wrong with the rows.
    """
    names = tables[0].names
    rows = np.concatenate(list(parts))
    rows = rows[:: -(-len(rows) // MOST_ROWS)]
    gone = sum(missing_cells(table.values).sum(axis=0) for table in tables) / max(
        sum(map(len, tables)), 1
    )
    sensors, seen = [], dict[bytes, str]()
    for i, name in enumerate(names):
        worst, found = _look(rows[:, i], float(gone[i]))
        first = seen.setdefault(np.ascontiguousarray(rows[:, i]).tobytes(), name)
        if first != name and np.ptp(rows[:, i]) > 0:
            worst, found = max(worst, 1), [*found, f"a duplicate of {first}"]
        if drifting[i]:
            worst, found = max(worst, 1), [*found, "drifts through the training"]
        sensors.append(Sensor(name, GRADES[worst], tuple(found)))
    return Sheet(*_whole(sensors, notes), tuple(sensors))


def _look(values: Array, missing: float) -> tuple[int, list[str]]:
    """The place of a sensor's grade, and what was found."""
    worst, found = 0, []
    if missing > _MISSING[0]:
        worst = 2 if missing > _MISSING[1] else 1
        found.append(f"{missing:.0%} missing")
    low, high = float(values.min()), float(values.max())
    if low == high:
        return 2, [*found, f"constant at {low:g}"]
    different = np.unique(values)
    steps = np.diff(values)
    if (steps >= 0).all() and len(different) > SWITCH:
        return 2, [*found, "only rises: a counter; give how fast it rises"]
    if len(different) <= SWITCH:
        return worst, [*found, f"{len(different)} values: a switch or a set point"]
    same = run_edges(steps == 0)
    longest = int((same[:, 1] - same[:, 0]).max(initial=0)) + 1
    if longest > _STUCK * len(values):
        worst, found = max(worst, 1), [*found, f"stuck for {longest / len(values):.0%} of the rows"]
    middle = float(medians(values[None].copy())[0])
    spread = 1.4826 * float(medians(np.abs(values - middle)[None])[0])
    far = float((np.abs(values - middle) > _FAR * spread).mean()) if spread > 0 else 0.0
    if 0 < far < _OUTLIERS:
        worst, found = max(worst, 1), [*found, f"outliers in {far:.1%} of the rows"]
    if _modes(different, values):
        found.append("several modes")
    return worst, found


def _modes(different: Array, values: Array) -> bool:
    """Whether values lie in two clouds with nothing between them."""
    gaps = np.diff(different)
    at = int(gaps.argmax())
    share = float((values <= different[at]).mean())
    return bool(gaps[at] > _GAP * (different[-1] - different[0]) and _MODE < share < 1 - _MODE)


def _whole(sensors: Sequence[Sensor], notes: Sequence[str]) -> tuple[str, str]:
    """The grade of the whole, and why."""
    poor = [one.name for one in sensors if one.grade == POOR]
    usable = [one.name for one in sensors if one.grade == USABLE]
    reasons = [
        f"{len(some)} of {len(sensors)} sensors {'is' if len(some) == 1 else 'are'} {grade}"
        for grade, some in ((POOR, poor), (USABLE, usable))
        if some
    ]
    told = {
        "short": "too few rows",
        "contaminated": "stretches unlike the rest",
        "drift": "it drifts",
        "span": "less than a week, or a day",
    }
    reasons += [words for kind, words in told.items() if kind in notes]
    if "short" in notes or 2 * len(poor) > len(sensors):
        return POOR, "; ".join(reasons)
    if poor or 4 * len(usable) > len(sensors) or {"contaminated", "drift"} & set(notes):
        return USABLE, "; ".join(reasons)
    return GOOD, "; ".join(reasons)


def off_condition(parts: Sequence[Array], names: Sequence[str]) -> str | None:
    """A condition under which a machine is clearly off; None where there is none.

    A channel lies near zero for long, far from all it else does, and most others stand still then.
    """
    rows = np.concatenate(list(parts))
    varies = np.ptp(rows, axis=0) > 0
    if varies.sum() < 2:
        return None
    for i in np.flatnonzero(varies).tolist():
        values = rows[:, i]
        top = float(quantile(values[None].copy(), 0.95)[0])
        still = np.abs(values) < 0.05 * top
        share = float(still.mean())
        between = (values >= 0.05 * top) & (values < 0.3 * top)
        runs = run_edges(still)
        if top <= 0 or not 0.02 < share < 0.7 or between.mean() > 0.2 * share:
            continue
        if (runs[:, 1] - runs[:, 0]).mean() < SWITCH:
            continue
        others = np.delete(np.flatnonzero(varies), np.flatnonzero(np.flatnonzero(varies) == i))
        quiet, loud = rows[still][:, others].std(axis=0), rows[~still][:, others].std(axis=0)
        apart = np.abs(rows[still][:, others].mean(axis=0) - rows[~still][:, others].mean(axis=0))
        if 2 * ((quiet < 0.5 * loud) & (apart > 3 * loud)).sum() >= len(others):
            name = names[i] if str(names[i]).isidentifier() else f"`{names[i]}`"
            return f"{name} < {0.15 * top:.3g}"
    return None
