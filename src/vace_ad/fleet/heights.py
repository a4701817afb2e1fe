"""How high scores rise on a machine, and units in which machines can be compared.

A height is a score over its threshold. Thresholds of short trainings are estimates. Where those of
a fleet do not tell which machines score higher later, their differences are chance, and scores
themselves are compared; where they tell, each machine has its own; mostly it is in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from vace_ad.alarms.calibration import Calibration
    from vace_ad.detection import Detection

Array = NDArray[np.float64]

PEAKS = 64  # kept of a machine at most, however long it is
_DIGITS = 4  # of a peak that is kept
_PAIRED = 1_000  # machines of which each is compared with each other: half a million pairs
_APART = 0.1  # in logarithms: thresholds nearer than this tell nothing
_FEWEST = 100  # pairs that tell
_FAR = 2.0  # deviations from the typical threshold beyond which the difference is no chance


class Heights(NamedTuple):
    """The highest scores of stretches of a machine's rows, over their thresholds."""

    limit: float  # the threshold as a score, in the middle
    peaks: tuple[float, ...] = ()  # of the rows that were judged
    trained: tuple[float, ...] = ()  # of training rows, by statistics that did not see them


def heights_of(found: Detection, first: int, learned: Calibration, reach: int) -> Heights:
    """Of the rows from `first` on; those that a person called normal, and `reach` around, not."""
    known = found.limits > 0
    height = np.where(known, found.scores / np.where(known, found.limits, 1.0), np.nan)[first:]
    for one in found.accepted:
        height[max(0, one.start - reach - first) : max(0, one.end + reach - first)] = np.nan
    limits = found.limits[known]
    limit = float(np.median(limits)) if len(limits) else 0.0
    if not limit > 0:
        return Heights(0.0)
    sample = np.full(int(learned.rows[-1]) + 1, learned.scores.min())  # what was not kept is lower
    sample[learned.rows] = learned.scores
    trained = _peaks(sample / limit, learned.spacing)
    return Heights(limit, _peaks(height, learned.spacing), trained)


def _peaks(height: Array, spacing: int) -> tuple[float, ...]:
    """The highest of each stretch as long as rows share evidence, or longer."""
    stretch = max(spacing, -(-len(height) // PEAKS))
    edges = np.arange(0, len(height), stretch)
    highest = np.fmax.reduceat(height, edges) if len(edges) else np.empty(0)
    return tuple(float(f"{x:.{_DIGITS}g}") for x in highest[np.isfinite(highest)].tolist())


def comparable(limits: Array, middles: Array) -> Array:
    """Factors (n,) that make heights of machines comparable.

    `limits` are their thresholds as scores, `middles` their usual heights, both (n,). With β the
    slope of log scores on log thresholds over machines, a machine's unit is its threshold to the
    power of β times the typical one to that of 1 - β. Thresholds far from the typical one are moved
    by no more than the others, so that a machine that is truly different keeps its own.
    """
    x = np.log(limits)
    away = x - np.median(x)
    far = _FAR * 1.4826 * float(np.median(np.abs(away)))
    slope = resistant_slope(x, np.log(middles) + x)
    return np.asarray(np.exp((1 - slope) * np.clip(away, -far, far)))


def resistant_slope(x: Array, y: Array) -> float:
    """The median slope over pairs of machines (Theil and Sen), from 0 to 1; 1 where few tell."""
    order = np.argsort(x, kind="stable")
    if len(order) > _PAIRED:
        order = order[np.linspace(0, len(order) - 1, _PAIRED).astype(np.intp)]
    i, j = np.triu_indices(len(order), 1)
    run = x[order][j] - x[order][i]
    apart = run > _APART
    if apart.sum() < _FEWEST:
        return 1.0
    rise = y[order][j] - y[order][i]
    return float(np.clip(np.median(rise[apart] / run[apart]), 0.0, 1.0))
