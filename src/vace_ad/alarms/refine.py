"""Sharp events: onset and end from row-level evidence, after an alarm was found.

A score looks at many rows at a time, so rows above a threshold begin before a fault and end after
it. Here each row around an alarm is held against the rows before it, channel by channel, and the
stretch with the most evidence is the event.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarming import Learned
from vace_ad.alarms.blame import LEVEL_SHARE
from vace_ad.alarms.phase import same_phase
from vace_ad.frames.segments import missing_cells
from vace_ad.signals.normal import Normal

Array = NDArray[np.float64]

REACH = 48  # rows by which an event may grow on either side
GAP, BEFORE = 40, 120  # rows that end so early before an alarm, and so many of them or a whole
# period, are what it is held against
PAST = 2_000  # rows before an alarm that tell how much a channel varies of late
CHANNELS = 8  # that speak loudest
LEAST = 20  # rows to be held against; with fewer, training's mean and deviation stand in
USUAL = 1.64  # deviations that nine in ten rows of a normal law stay within
SHARE = 0.55  # of the strong rows' evidence that a row must have to belong to the event
SHORT = 0.25  # of the rows above the threshold: less than that is one burst of several


def sharpen(
    values: NDArray[Any],
    runs: NDArray[np.intp],
    ratio: Array,
    first: int,
    model: Learned,
) -> NDArray[np.intp]:
    """The runs (n, 2) of rows above a threshold, each cut or grown to its fault.

    None reaches into its neighbour, nor before row `first`.
    """
    sharp = runs.copy()
    for i, (start, end) in enumerate(runs.tolist()):
        low = max(start - REACH, first if i == 0 else int(runs[i - 1, 1]))
        high = min(end + REACH, len(values) if i == len(runs) - 1 else int(runs[i + 1, 0]))
        evidence = row_evidence(values, low, high, start, model)
        found = loudest_stretch(evidence)
        if found is None:
            continue
        if found[1] - found[0] < SHORT * (end - start):  # it comes in bursts: all of them
            bar = SHARE * float(np.median(evidence[slice(*found)]))
            loud = np.flatnonzero(evidence[start - low : end - low] >= bar) + start - low
            found = (int(loud[0]), int(loud[-1]) + 1) if len(loud) else found
        first_row, last_row = low + found[0], low + found[1]
        strong, near = strongest_rows(ratio, start, end), model.config.length // 2
        if first_row - near >= strong[1] or last_row + near <= strong[0]:
            continue  # the fault shows in no level: the run says all that is known
        sharp[i] = first_row, last_row
    return sharp


def strongest_rows(ratio: Array, start: int, end: int) -> tuple[int, int]:
    """The rows of a run around its peak that have at least half of its height above 1."""
    above = np.nan_to_num(ratio[start:end]) - 1
    peak = int(np.argmax(above))
    weak = np.flatnonzero(above < 0.5 * above[peak])
    first = int(weak[weak < peak].max(initial=-1)) + 1
    return start + first, start + int(weak[weak > peak].min(initial=end - start))


def row_evidence(values: NDArray[Any], low: int, high: int, alarm: int, model: Learned) -> Array:
    """How far rows [low, high) lie off the rows before the alarm, in the loudest channels, (n,)."""
    normal, wander = model.normal, model.wander
    until = max(alarm - GAP, 0)
    past = _filled(values[max(0, until - PAST) : until], normal)
    rows = _filled(values[low:high], normal)
    before = past[-max(BEFORE, model.config.length) :]
    if len(before) >= LEAST:
        middle, lately = np.median(before, axis=0), past.std(axis=0)
    else:
        middle, lately = normal.mean, wander.deviation
        before = (middle + USUAL * lately)[None]
    floor = LEVEL_SHARE * np.maximum(np.abs(middle), np.abs(rows).max(axis=0))
    unit = np.hypot(np.sqrt(wander.deviation * lately), floor) + 1e-9 * normal.scale
    excess = _excess(rows - middle, before - middle, unit)
    if model.period and len(past) >= 2 * model.period + LEAST:  # and off the same phase as well
        phases = np.arange(low, high) - (until - len(past))  # counted from the first past row
        off = rows - same_phase(past, phases, model.period)
        swings = past[model.period :] - past[: -model.period]
        excess = np.minimum(excess, _excess(off, swings, unit))
    loudest = np.argsort(-excess.mean(axis=0), kind="stable")[:CHANNELS]
    return np.asarray(excess[:, loudest].mean(axis=1))


def _excess(off: Array, usual: Array, unit: Array) -> Array:
    """How far rows are off, on a log scale, beyond nine in ten of the usual ones."""
    edge = np.quantile(np.log1p(np.abs(usual) / unit), 0.9, axis=0)
    return np.asarray(np.maximum(np.log1p(np.abs(off) / unit) - edge, 0))


def loudest_stretch(evidence: Array) -> tuple[int, int] | None:
    """The half-open stretch with the largest sum of what is above a share of the strong rows."""
    known = evidence[evidence > 0]
    if not len(known):
        return None
    total = np.insert(np.cumsum(evidence - SHARE * np.quantile(known, 0.9)), 0, 0.0)
    lowest = np.minimum.accumulate(total)
    end = int(np.argmax(total - lowest))
    start = int(np.flatnonzero(total[: end + 1] == lowest[end])[-1])
    return start, max(end, start + 1)


def _filled(values: NDArray[Any], normal: Normal) -> Array:
    """Values as float64; a missing cell says nothing, so it has the channel's median here."""
    gone = missing_cells(values)
    known = np.asarray(values, np.float64)
    if not gone.any():
        return known
    middle = np.where(gone.all(axis=0), normal.mean, 0.0)
    some = ~gone.all(axis=0)
    middle[some] = np.nanmedian(np.where(gone, np.nan, known)[:, some], axis=0)
    return np.where(gone, middle, known)
