"""One budget for many machines, kept by what all of them show together.

Each machine's part of the budget is tiny: 3 alarms a week over 1,000 machines are one alarm in six
years on each, and no training of some days tells what comes so rarely. So each machine is judged
by a threshold that its training can support, and the fleet decides how far beyond it an alarm is:
the highest evidence over threshold of each machine is one observation, their tail is exponential,
and the bar lies where all machines together would pass it as often as the budget allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms import Budget
from vace_ad.alarms.severity import ratio_at
from vace_ad.app.run import Alarming
from vace_ad.fleet.incidents import span
from vace_ad.fleet.rows import MachineRow

LEAST = 30  # machines that tell a tail
SUPPORTED = 0.1  # false alarms in as many rows as were trained on: rarer ones are guesswork
FROM = 0.5  # of the threshold: peaks are known from here on, as near misses
_COMMON = (5, 0.05)  # machines, and share of them, with an event at the same moment: an incident
_UNUSUAL = 3.0  # times as many as at most moments
_QUANTILES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.8)  # of the excesses, that tell σ in turn
_WORTH = 0.6  # of an excess in the mean: what one tells of σ by a quantile
_FAULTY = 0.2  # normal machines that a whole fleet shows beyond what counts as faulty
_FEWEST = 5  # excesses that tell anything


def supported(alarming: Alarming, trained: int, step: int | None) -> Alarming:
    """A machine's part of the budget, or what its training rows can show where that is more."""
    rate = alarming.budget.rate(step or alarming.step)
    if rate is None or rate * trained >= SUPPORTED:
        return alarming
    return replace(alarming, budget=Budget(SUPPORTED / trained * 10_000, "rows"))


def own_bar(part: Budget, used: Budget, step: int | None, spacing: int) -> float:
    """Evidence over the threshold in use that a machine's part of the budget asks for."""
    wanted, rate = part.rate(step), used.rate(step)
    if wanted is None or rate is None or wanted >= rate:
        return 1.0
    return ratio_at(rate, wanted, spacing)


def kept_to_budget(rows: Sequence[MachineRow]) -> tuple[list[MachineRow], list[str]]:
    """The rows with the events that the fleet's budget allows, and what to know about them."""
    pooled = [row for row in rows if row.bar > 1]
    if not pooled:
        return list(rows), []
    common = _common_moments(pooled)
    peaks = np.array([_peak(row, common) for row in pooled])
    allowed = float(np.mean([row.allowed for row in pooled]))
    fitted = fit_bar(peaks, allowed) if len(pooled) >= LEAST else None
    kept, dropped = [], 0
    for row in rows:
        bar, scale = (row.bar, row.bar - 1) if fitted is None else fitted
        events = row.events if row.bar == 1 else tuple(_passing(row.events, bar, scale))
        dropped += len(row.events) - len(events)
        kept.append(replace(row, events=events))
    return kept, _said(len(pooled), dropped, None if fitted is None else fitted[0])


def fit_bar(peaks: NDArray[np.float64], allowed: float) -> tuple[float, float]:
    """The bar that so many events a machine pass, and the scale of the tail.

    Excesses y over a level u fall off as exp(−y / σ), with σ from one of their quantiles. A σ
    from n excesses is uncertain, so the bar lies at the quantile of the predictive law,
    u + σ n ((share / allowed)^(1/n) − 1). Machines far beyond are faulty rather than normal: the
    first σ is that of low excesses, which they hardly move, the next ones are found without them.
    """
    bar = cut = np.inf
    scale = 1.0
    for quantile in _QUANTILES:
        normal = peaks[peaks <= cut]
        level = max(FROM, float(np.median(normal)))
        beyond = normal[normal > level] - level
        n: float = len(beyond)
        if n < _FEWEST:
            break
        scale = float(np.quantile(beyond, quantile)) / -np.log(1 - quantile)
        share, n = n / len(normal), _WORTH * n
        bar, cut = (
            level + scale * n * float(np.expm1(max(np.log(share / chance), 0.0) / n))
            for chance in (allowed, min(allowed, _FAULTY / len(peaks)))
        )
    return (max(float(bar), 1.0), scale) if np.isfinite(bar) else (1.0, 1.0)


def _said(machines: int, dropped: int, bar: float | None) -> list[str]:
    if bar is None:
        words = "alarms are extrapolated beyond what its training rows can show"
        return [f"the budget is tiny for each of {machines:,} machines: {words}"]
    note = (
        f"{machines:,} machines have too few training rows for their part of the budget: alarms "
        f"are {bar:.3g} times a machine's own threshold, as far as all of them together tell"
    )
    more = f"{dropped:,} weaker events are in the results of their machines only"
    return [note, more] if dropped else [note]


def _passing(events: Sequence[dict[str, Any]], bar: float, scale: float) -> list[dict[str, Any]]:
    """Events beyond the bar, with their severity against the fleet's budget."""
    found = []
    for event in events:
        if event["kind"] != "anomaly":
            found.append(event)
        elif (event["ratio"] or 0.0) > bar:
            decades = (event["ratio"] - bar) / (scale * np.log(10))
            found.append({**event, "severity": 100 * decades / (1 + decades)})
    return found


def _peak(row: MachineRow, common: list[tuple[bool, int, int]]) -> float:
    """The highest evidence over threshold of a machine by itself."""
    alone = [
        event["ratio"] or 0.0 for event in row.anomalies if not _within(_moment(event), common)
    ]
    return max([*alone, row.missed])


def _moment(event: dict[str, Any]) -> tuple[bool, int, int]:
    timed = event["start_time"] is not None
    return (timed, *span(event, timed))


def _within(moment: tuple[bool, int, int], common: list[tuple[bool, int, int]]) -> bool:
    timed, start, end = moment
    return any(timed == kind and start <= b and a <= end for kind, a, b in common)


def _common_moments(rows: Sequence[MachineRow]) -> list[tuple[bool, int, int]]:
    """Stretches in which so many machines have an event that they are one incident.

    Many more than usual: where events are common at all times, they are how the fleet is.
    """
    inside = sum(event["end"] - event["start"] for row in rows for event in row.anomalies)
    usual = inside / max(float(np.mean([row.rows for row in rows])), 1.0)  # events at a moment
    many = max(_COMMON[0], _COMMON[1] * len(rows), _UNUSUAL * usual)
    found = []
    for kind in (True, False):
        spans = [
            (start, end)
            for row in rows
            for timed, start, end in map(_moment, row.anomalies)
            if timed == kind
        ]
        found += [(kind, start, end) for start, end in _crowded(spans, many)]
    return found


def _crowded(spans: Sequence[tuple[int, int]], many: float) -> list[tuple[int, int]]:
    """Where at least so many spans overlap."""
    edges = sorted(edge for a, b in spans for edge in ((a, -1), (b, 1)))  # begins before ends
    found, count, began = [], 0, None
    for moment, change in edges:
        count -= change
        if count >= many and began is None:
            began = moment
        elif count < many and began is not None:
            found.append((began, moment))
            began = None
    return found
