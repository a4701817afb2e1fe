"""Events: stretches of rows that a person should look at, and how strong they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.alarms.tail import Tail

ANOMALY, NO_DATA = "anomaly", "no data"


@dataclass(frozen=True)
class Event:
    """Rows `[start, end)` of one kind; `start == end` for a jump in time between two rows."""

    start: int
    end: int
    peak: int  # row of the highest score
    kind: str = ANOMALY  # or NO_DATA
    score: float = float("nan")  # at the peak
    probability: float = float("nan")  # that a normal row scores as high
    severity: float = float("nan")  # 0 at the threshold, towards 100 the rarer the peak
    start_time: np.datetime64 | None = None
    end_time: np.datetime64 | None = None  # of the last row; after a jump, of the row behind it
    peak_time: np.datetime64 | None = None
    signal: str | None = None  # the evidence that spoke loudest
    shares: tuple[tuple[str, float], ...] = ()  # (channel, share of the score), highest first

    @property
    def rows(self) -> int:
        """How many rows the event has."""
        return self.end - self.start

    def with_blame(self, shares: Sequence[tuple[str, float]], signal: str | None = None) -> Event:
        """The same event with the channels to blame."""
        return replace(self, shares=tuple(shares), signal=signal or self.signal)


def severity(probability: NDArray[np.float64] | float, at_threshold: float) -> NDArray[np.float64]:
    """Severity from 0 to 100: how many decades rarer than the threshold, d, as 100 · d / (d + 1).

    0 just above the threshold, 50 at ten times rarer, 75 at a thousand times, never quite 100.
    """
    p: NDArray[np.float64] = np.asarray(probability, dtype=np.float64)
    decades: NDArray[np.float64] = np.maximum(np.log10(at_threshold) - np.log10(p), 0.0)
    return 100.0 * decades / (decades + 1.0)


def events_from_scores(
    scores: NDArray[np.float64],
    threshold: float,
    *,
    rules: Rules | None = None,
    tail: Tail | None = None,
    time: NDArray[np.datetime64] | None = None,
) -> list[Event]:
    """The events of scores above a threshold, in order of time.

    With a `tail`, each event gets a probability and a severity.
    """
    runs = runs_above(scores, threshold, rules or Rules())
    events = []
    for start, end in runs.tolist():
        peak = start + int(np.nanargmax(scores[start:end]))
        event = Event(start, end, peak, score=float(scores[peak]))
        if tail is not None:
            p = float(tail.probability(scores[peak]))
            limit = float(tail.probability(threshold))
            event = replace(event, probability=p, severity=float(severity(p, limit)))
        events.append(event if time is None else with_time(event, time))
    return events


def with_time(event: Event, time: NDArray[np.datetime64]) -> Event:
    """The event with the times of its rows."""
    if event.start == event.end:  # between two rows
        before, after = time[event.start - 1], time[event.start]
        return replace(event, start_time=before, end_time=after, peak_time=before)
    return replace(
        event,
        start_time=time[event.start],
        end_time=time[event.end - 1],
        peak_time=time[event.peak],
    )


def event_columns(events: Sequence[Event], top: int = 3) -> dict[str, Any]:
    """Events as columns of a table, times included where the events have them."""

    def column(name: str, dtype: str) -> NDArray[Any]:
        return np.array([getattr(event, name) for event in events], dtype=dtype)

    columns: dict[str, Any] = {"kind": [event.kind for event in events]}
    if any(event.start_time is not None for event in events):
        for name in ("start_time", "end_time", "peak_time"):
            columns[name] = column(name, "datetime64[ns]")
    columns |= {name: column(name, "int64") for name in ("start", "end", "peak", "rows")}
    columns |= {name: column(name, "float64") for name in ("score", "severity", "probability")}
    columns["signal"] = [event.signal or "" for event in events]
    columns["channels"] = [
        ", ".join(f"{name} {share:.0%}" for name, share in event.shares[:top]) for event in events
    ]
    return columns
