"""Sharp events: onset and end from row-level evidence, after an alarm was found.

A score looks at many rows at a time, so rows above a threshold begin before a fault and end after
it. Here each row around an alarm is held against the rows before it, channel by channel: is a value
outside its usual range, or kept for longer than ever? The stretch that stands out most from the
rows around it is the core of the event. From there it grows while the evidence has not returned to
that of the other rows, farther at its end, where faults fade, than at its onset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarming import Learned
from vace_ad.alarms.blame import LEVEL_SHARE
from vace_ad.alarms.phase import same_phase
from vace_ad.alarms.still import longest_still, still_lengths
from vace_ad.frames.segments import missing_cells
from vace_ad.signals.normal import Normal

Array = NDArray[np.float64]

REACH, BEHIND = 48, 32  # rows by which an event may begin before an alarm, and end after it
LINGER = 0.7  # of the way from its usual level to the threshold: above it a score has not fallen
GAP, BEFORE = 40, 120  # rows that end so early before an alarm, and so many of them or a whole
# period, are what it is held against
PAST = 2_000  # rows before an alarm that tell how much a channel varies of late
CHANNELS, NEAR = 8, 10  # that speak loudest in the rows of an alarm and so many about it
LEAST = 20  # rows to be held against; with fewer, training's mean and deviation stand in
USUAL, TAIL = 1.64, 0.05  # deviations that rows of a normal law exceed so rarely on each side
STILL = 2  # times the longest still stretch of the past: a channel that is stuck
RISE, FALL = 0.25, 0.08  # of what the core has above other rows: less is before it, after it
NOISE = 0.7  # deviations of the other rows by which rows after the core must be above them
CALM = 12  # rows without evidence that are thought before and after those at hand
LENGTHS = 1_000  # of stretches that are tried at most, before those next to the best
SHARE = 0.55  # of a burst's evidence that a row of another burst has
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
        last = len(values) if i == len(runs) - 1 else int(runs[i + 1, 0])
        high = min(_fallen(ratio[:last], end) + BEHIND, last)
        evidence = row_evidence(values, low, high, start, model, end)
        found = loudest_stretch(evidence)
        strong, near = strongest_rows(ratio, start, end), model.config.length // 2
        if (
            found is None
            or low + found[0] - near >= strong[1]
            or low + found[1] + near <= strong[0]
        ):
            continue  # the fault shows in no level: the run says all that is known
        if found[1] - found[0] < SHORT * (end - start):  # it comes in bursts: all of them
            bar = SHARE * float(np.median(evidence[slice(*found)]))
            loud = np.flatnonzero(evidence[start - low : end - low] >= bar) + start - low
            found = (int(loud[0]), int(loud[-1]) + 1) if len(loud) else found
        sharp[i] = low + found[0], low + found[1]
    return sharp


def strongest_rows(ratio: Array, start: int, end: int) -> tuple[int, int]:
    """The rows of a run around its peak that have at least half of its height above 1."""
    above = np.nan_to_num(ratio[start:end]) - 1
    peak = int(np.argmax(above))
    weak = np.flatnonzero(above < 0.5 * above[peak])
    first = int(weak[weak < peak].max(initial=-1)) + 1
    return start + first, start + int(weak[weak > peak].min(initial=end - start))


def _fallen(ratio: Array, end: int) -> int:
    """The first row from `end` on where little is left of what the alarm had above the rows before.

    Some scores are never far below their threshold: what is left is counted from their usual level.
    """
    past = ratio[max(0, end - PAST) : end]
    usual = min(float(np.median(np.nan_to_num(past))), 1.0) if len(past) else 0.0
    low = np.flatnonzero(~(ratio[end:] >= usual + LINGER * (1 - usual)))
    return end + int(low[0]) if len(low) else len(ratio)


def row_evidence(
    values: NDArray[Any], low: int, high: int, alarm: int, model: Learned, end: int | None = None
) -> Array:
    """How far rows [low, high) lie off the rows before the alarm, in the loudest channels, (n,).

    The alarm has rows [alarm, end), by default one.
    """
    normal, wander = model.normal, model.wander
    until = max(alarm - GAP, 0)
    past = _filled(values[max(0, until - PAST) : until], normal)
    rows = _filled(values[low:high], normal)
    before = past[-max(BEFORE, model.config.length) :]
    if len(before) >= LEAST:
        middle, lately = np.median(before, axis=0), past.std(axis=0)
    else:
        middle, lately = normal.mean, wander.deviation
        before = middle + USUAL * lately * np.repeat([[-1.0], [1.0]], LEAST, axis=0)
    floor = LEVEL_SHARE * np.maximum(np.abs(middle), np.abs(rows).max(axis=0))
    unit = np.hypot(np.sqrt(wander.deviation * lately), floor) + 1e-9 * normal.scale
    excess = _excess(rows - middle, before - middle, unit)
    usual = _excess(before - middle, before - middle, unit)
    if model.period and len(past) >= 2 * model.period + LEAST:  # and off the same phase as well
        phases = np.arange(low, high) - (until - len(past))  # counted from the first past row
        off = rows - same_phase(past, phases, model.period)
        swings = past[model.period :] - past[: -model.period]
        excess = np.minimum(excess, _excess(off, swings, unit))
    excess += _stuck(_known(values[low:high]), _known(values[max(0, until - PAST) : until]))
    about = slice(max(alarm - NEAR - low, 0), (alarm + 1 if end is None else end) + NEAR - low)
    louder = excess[about].mean(axis=0) - usual.mean(axis=0)
    loudest = np.argsort(-louder, kind="stable")[:CHANNELS]
    edge = np.quantile(usual[:, loudest].mean(axis=1), 1 - 2 * TAIL)
    return np.asarray(np.maximum(excess[:, loudest].mean(axis=1) - edge, 0.0))


def _excess(off: Array, usual: Array, unit: Array) -> Array:
    """How far rows are off, on a log scale, beyond nine in ten of the usual ones, up or down."""
    low, high = np.quantile(_log(usual / unit), (TAIL, 1 - TAIL), axis=0)
    away = _log(off / unit)
    return np.asarray(np.maximum(away - np.maximum(high, 0), np.minimum(low, 0) - away).clip(0))


def _log(away: Array) -> Array:
    return np.asarray(np.copysign(np.log1p(np.abs(away)), away))


def _stuck(rows: Array, past: Array) -> Array:
    """How much longer than ever before a channel keeps its value, on a log scale, (n, n_channels).

    A short past cannot tell that a longer stretch is unusual.
    """
    times = np.minimum(still_lengths(rows), len(past)) / longest_still(past)
    return np.where(times > STILL, np.log(np.maximum(times, 1.0)), 0.0)


def loudest_stretch(evidence: Array) -> tuple[int, int] | None:
    """The half-open stretch that stands out from the other rows, down to where it fades."""
    if not evidence.any():
        return None
    start, end = core(np.pad(evidence, CALM))
    start, end = max(start - CALM, 0), min(end - CALM, len(evidence))
    others = np.concatenate([evidence[:start], evidence[end:], np.zeros(1)])
    inside = evidence[start:end].mean()
    outside = min(others.mean(), inside / 2)  # few of the rows may be outside the event at all
    fall = max(FALL * (inside - outside), NOISE * others.std())
    before = np.cumsum(evidence[:start][::-1] - outside - RISE * (inside - outside))
    after = np.cumsum(evidence[end:] - outside - fall)
    if before.max(initial=0) > 0:
        start -= int(np.argmax(before)) + 1
    if after.max(initial=0) > 0:
        end += int(np.argmax(after)) + 1
    return start, end


def core(evidence: Array) -> tuple[int, int]:
    """The stretch that explains most of the variance as one level inside and one outside."""
    n = len(evidence)
    total = np.insert(np.cumsum(evidence - evidence.mean()), 0, 0.0)
    step = max(1, (n - 1) // LENGTHS)
    best = _most_explained(total, range(1, n, step))
    return _most_explained(total, range(max(1, best[1] - best[0] - step), n)[: 2 * step + 1])


def _most_explained(total: Array, lengths: Iterable[int]) -> tuple[int, int]:
    """The best stretch of these lengths, from the running sum of n centred values.

    k of them with the sum S explain S² n / (k (n − k)) of the variance.
    """
    n = len(total) - 1
    best, found = 0.0, (0, n)
    for k in lengths:
        sums = total[k:] - total[:-k]
        at = int(np.argmax(sums))
        explained = max(float(sums[at]), 0.0) ** 2 / (k * (n - k))
        if explained > best:
            best, found = explained, (at, at + k)
    return found


def _known(values: NDArray[Any]) -> Array:
    """Values as float64, NaN where a cell is missing."""
    return np.where(missing_cells(values), np.nan, values).astype(np.float64)


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
