"""The threshold of a fleet: one budget for many machines, from their peaks together.

Each machine's part of the budget is tiny: 3 alarms a week over 1,000 machines are one alarm in six
years on each, and no training of some days tells what comes so rarely. So each machine is judged
by limits that its training can support, and the fleet decides how far beyond them an alarm is: the
highest evidence of all stretches of all machines is one sample, their tail is exponential, and the
bar lies where all together would pass it as often as the budget allows.

Where machines move together, what is expected of each adds up all the same. A fault that hits many
is a small part of all stretches and hardly moves the bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms import Budget
from vace_ad.alarms.scan import Tails
from vace_ad.app.run import Alarming
from vace_ad.detection import Detection
from vace_ad.fleet.entities import MachineRow
from vace_ad.wording import plural

LEAST = 30  # machines that tell a tail
SUPPORTED = 0.1  # false alarms in as many rows as were trained on: rarer ones are guesswork
_LOW, _HIGH = (0.2, 0.3, 0.4, 0.5, 0.5), (0.6, 0.8, 0.8)  # quantiles that tell σ in turn
_HEAVIER = 1.2  # by which higher excesses may raise the bar: tails are not quite exponential
_WORTH = 0.6  # of an excess in the mean: what one tells of σ by a quantile
_FAULTY = 0.2  # normal stretches that a whole fleet shows beyond what counts as faulty
_FEWEST = 5  # excesses that tell anything


@dataclass(frozen=True)
class Bar:
    """The height that evidence must exceed for an alarm."""

    height: float
    scale: float  # by which heights beyond it become e times rarer


def supported(alarming: Alarming, trained: int, step: int | None) -> Alarming:
    """A machine's part of the budget, or what its training rows can show where that is more."""
    rate = alarming.budget.rate(step or alarming.step)
    if rate is None or rate * trained >= SUPPORTED:
        return alarming
    return replace(alarming, budget=Budget(SUPPORTED / trained * 10_000, "rows"))


def own_bar(part: Budget, used: Budget, step: int | None, tails: Tails) -> float:
    """Evidence over the limits in use that a machine's part of the budget asks for."""
    wanted, rate = part.rate(step), used.rate(step)
    if wanted is None or rate is None or wanted >= rate:
        return 1.0
    return float((tails.needed(wanted) / tails.needed(rate)).max())


def kept_to_budget(rows: Sequence[MachineRow]) -> tuple[list[MachineRow], list[str]]:
    """The rows with the events that the fleet's budget allows, and notes."""
    pooled = [row for row in rows if row.bar > 1]
    if not pooled:
        return list(rows), []
    heard = [row for row in pooled if row.peaks]
    if len(heard) < LEAST:
        kept = [row if row.bar == 1 else _only(row, "ratio", row.bar) for row in rows]
        words = "alarms are extrapolated beyond what its training rows can show"
        return kept, [f"the budget is tiny for each of {len(pooled):,} machines: {words}"]
    bar = fleet_bar(heard)
    kept = [row if row.bar == 1 else _only(row, "height", bar.height) for row in rows]
    note = (
        f"{plural(len(pooled), 'machine has', 'machines have')} too few training rows for their "
        "part of the budget: alarms "
        f"are {bar.height:.3g} times their limits, as far as all of them together tell"
    )
    dropped = sum(len(row.events) for row in rows) - sum(len(row.events) for row in kept)
    weaker = plural(dropped, "weaker event is", "weaker events are")
    more = f"{weaker} in the results of their machines only"
    return kept, [note, more] if dropped else [note]


def fleet_bar(rows: Sequence[MachineRow]) -> Bar:
    """The bar that all machines together set, never below their own limits."""
    peaks = np.concatenate([row.peaks for row in rows])
    bar = fit_bar(peaks, sum(row.allowed for row in rows) / len(peaks), len(rows))
    if not np.isfinite(bar.height):  # all are alike
        return Bar(1.0, 1.0)
    return Bar(max(bar.height, 1.0), bar.scale)


def fit_bar(peaks: NDArray[np.float64], chance: float, machines: int) -> Bar:
    """The bar that a peak passes by this chance, and the scale of the tail.

    Excesses y over a level u fall off as exp(−y / σ), with σ from one of their quantiles. A σ from
    n excesses is uncertain, so the bar lies at the quantile of the predictive law,
    u + σ n ((share / chance)^(1/n) − 1); peaks of one machine are alike, so n is no more than half
    the machines. Peaks far beyond are faults rather than normal: the first σ is that of low
    excesses, which they hardly move, the next ones are found without them. Where higher excesses
    set a much higher bar than lower ones, too many are faults to be left out.
    """
    low = _fit(peaks, chance, machines, _LOW)
    high = _fit(peaks, chance, machines, _LOW + _HIGH)
    most = Bar(_HEAVIER * low.height, _HEAVIER * low.scale)
    return min(high, most, key=lambda bar: bar.height)


def _fit(
    peaks: NDArray[np.float64], chance: float, machines: int, quantiles: Sequence[float]
) -> Bar:
    """The bar by these quantiles in turn; infinite where there are too few excesses."""
    height = cut = np.inf
    scale = 1.0
    for quantile in quantiles:
        normal = peaks[peaks <= cut]
        level = float(np.median(normal)) if len(normal) else 0.0
        beyond = normal[normal > level] - level
        if len(beyond) < _FEWEST:
            break
        scale = float(np.quantile(beyond, quantile)) / -np.log(1 - quantile)
        share, n = len(beyond) / len(normal), _WORTH * min(len(beyond), machines / 2)
        height, cut = (
            level + scale * n * float(np.expm1(max(np.log(share / rare), 0.0) / n))
            for rare in (chance, min(chance, _FAULTY / len(peaks)))
        )
    return Bar(float(height), scale)


def _only(row: MachineRow, strength: str, bar: float) -> MachineRow:
    """Only the events stronger than a bar; missing data stays."""
    kept = [e for e in row.events if e["kind"] != "anomaly" or (e[strength] or 0.0) > bar]
    return replace(row, events=tuple(kept))


PEAKS = 64  # kept of a machine at most, however long it is
_DIGITS = 4  # of a peak that is kept


def peaks_of(found: Detection, first: int, reach: int) -> tuple[float, ...]:
    """The highest evidence of stretches of a machine's rows, over its limits.

    Of the rows from `first` on, without those that feedback accepted as normal and `reach` rows
    around them.
    """
    height = found.evidence[first:].copy()
    for one in found.accepted:
        height[max(0, one.start - reach - first) : max(0, one.end + reach - first)] = np.nan
    stretch = max(reach, -(-len(height) // PEAKS))  # as long as rows share evidence, or longer
    edges = np.arange(0, len(height), stretch)
    highest = np.fmax.reduceat(height, edges) if len(edges) else np.empty(0)
    return tuple(float(f"{x:.{_DIGITS}g}") for x in highest[np.isfinite(highest)].tolist())
