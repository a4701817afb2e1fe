"""Peaks of the evidence of a machine.

A height is evidence over its limit, so heights of all machines are in one unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from vace_ad.detection import Detection

Array = NDArray[np.float64]

PEAKS = 64  # kept of a machine at most, however long it is
_DIGITS = 4  # of a peak that is kept


def peaks_of(found: Detection, first: int, reach: int) -> tuple[float, ...]:
    """The highest evidence of stretches of a machine's rows, over its limits.

    Of the rows from `first` on; those that a person called normal, and `reach` around, not.
    """
    height = found.evidence[first:].copy()
    for one in found.accepted:
        height[max(0, one.start - reach - first) : max(0, one.end + reach - first)] = np.nan
    return _peaks(height, reach)


def _peaks(height: Array, spacing: int) -> tuple[float, ...]:
    """The highest of each stretch as long as rows share evidence, or longer."""
    stretch = max(spacing, -(-len(height) // PEAKS))
    edges = np.arange(0, len(height), stretch)
    highest = np.fmax.reduceat(height, edges) if len(edges) else np.empty(0)
    return tuple(float(f"{x:.{_DIGITS}g}") for x in highest[np.isfinite(highest)].tolist())
