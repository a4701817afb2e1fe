"""Events: ranges of rows to investigate, and their severity.

Severity says how often normal operation shows an event as strong. The probability is alarms a row,
by the excursions of held-out training rows alone: neither the budget nor what came before on the
stream matters. Beyond what those rows show it is extrapolated by their tail, whose uncertainty
makes it a Pareto one, so fewer rows give a more careful answer. Severity is that probability on a
scale of decades, and its hundredth a score from 0 to 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.evidence import UNIT
from vace_ad.alarms.scan import Tails
from vace_ad.wording import plural

ANOMALY, NO_DATA, NEAR_MISS = "anomaly", "no data", "near miss"
CONDITIONS = "conditions"  # an alarm while conditions were outside training
ACCEPTED = "accepted"  # like something that a person called normal
BECAME_NORMAL = "ended because what stayed became the new normal"  # of an event that is `lasting`
LEVELS = ("low", "medium", "high", "critical")
BOUNDS = (50.0, 100 * 12 / 18, 80.0)  # severities of 6, 12 and 24 decades, where levels begin
HALF = 6.0  # decades at which severity is 50: one alarm in a million rows
LEAST = 1e-300  # the smallest probability that is reported
_NORMAL = 1.96  # standard deviations to either side of 95 %


class Reading(NamedTuple):
    """A channel at the peak of an event, and where it was expected."""

    channel: str
    value: float
    low: float  # of the expected range
    high: float


@dataclass(frozen=True)
class Event:
    """Rows `[start, end)` to investigate; `start == end` for a jump in time between two rows.

    Attributes
    ----------
    start, end
        The first row, and the row after the last one.
    peak
        The most surprising row.
    kind
        "anomaly", "no data", or "conditions" for an alarm under conditions outside training; "near
        miss" and "accepted" in the lists of these names.
    score
        Surprise of the peak, in nats.
    ratio
        Highest evidence divided by its limit: above 1 is an alarm.
    probability
        How often normal operation shows an event as strong as this one, per row.
    normal_rows
        Number of training rows that the probability is estimated from; it is extrapolated below one
        in so many rows.
    severity
        The probability on a scale from 0 to 100: 50 is one in a million rows.
    alarm
        The row whose evidence exceeded the limit, when a live stream reports the event.
    start_time, end_time, peak_time, alarm_time
        Times of these rows; `end_time` is that of the last row, or of the row after a jump.
    signal
        The kind of evidence that contributed most.
    shares
        Suspected channels and their shares, highest first.
    like
        For an accepted range: the id of the feedback that it matches.
    partner
        For a broken relation: the channel that the first suspect was related to.
    conditions
        For the kind "conditions": what was outside training, "ambient 41, trained to 33".
    lasting
        Whether the event ended because a lasting change became the new normal.
    readings
        Values of the suspects at the peak, with their expected ranges.
    groups
        Settings `component/channel` of the suspects.
    """

    start: int
    end: int
    peak: int
    kind: str = ANOMALY  # or CONDITIONS, NO_DATA, NEAR_MISS, ACCEPTED
    score: float = float("nan")
    ratio: float = float("nan")
    probability: float = float("nan")
    normal_rows: int | None = None
    severity: float = float("nan")
    alarm: int | None = None
    start_time: np.datetime64 | None = None
    end_time: np.datetime64 | None = None
    peak_time: np.datetime64 | None = None
    alarm_time: np.datetime64 | None = None
    signal: str | None = None
    shares: tuple[tuple[str, float], ...] = ()
    like: str | None = None
    partner: str | None = None
    conditions: str = ""
    lasting: bool = False
    readings: tuple[Reading, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.end - self.start

    @property
    def id(self) -> str:
        """An identifier that does not change while the event is open."""
        return f"{self.kind}-{self.start if self.alarm is None else self.alarm}".replace(" ", "-")

    @property
    def components(self) -> tuple[tuple[str, float], ...]:
        """Components and their shares, highest first: from settings or names `component/sensor`."""
        found: dict[str, float] = {}
        for name, share in self.shares:
            if component := self.component_of(name):
                found[component] = found.get(component, 0.0) + share
        return tuple(sorted(found.items(), key=lambda pair: -pair[1]))

    def component_of(self, channel: str) -> str:
        """The component of a channel; empty if it has none."""
        own = next((one for one in self.groups if one.endswith(f"/{channel}")), "")
        return own.removesuffix(f"/{channel}") or channel.rpartition("/")[0]

    @property
    def level(self) -> str:
        """The severity as a word: low, medium, high or critical; empty if there is none."""
        return "" if np.isnan(self.severity) else level(self.severity)

    @property
    def unit_score(self) -> float:
        """A score from 0 to 1: severity / 100."""
        return self.severity / 100

    @property
    def probability_upper(self) -> float:
        """Upper confidence bound of the probability (97.5 %), given the number of normal rows."""
        return (
            float("nan")
            if self.normal_rows is None
            else upper_bound(self.probability, self.normal_rows)
        )

    def with_blame(self, shares: Sequence[tuple[str, float]], signal: str | None = None) -> Event:
        """The same event with these suspected channels."""
        return replace(self, shares=tuple(shares), signal=signal or self.signal)


def groups_of(shares: Sequence[tuple[str, float]], components: Sequence[str]) -> tuple[str, ...]:
    """Of settings `component/channel`, those of the channels that are blamed."""
    names = {name for name, _ in shares}
    return tuple(one for one in components if any(one.endswith(f"/{name}") for name in names))


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
        alarm_time=None if event.alarm is None else time[event.alarm],
    )


def event_columns(events: Sequence[Event], top: int = 3) -> dict[str, Any]:
    """Events as columns of a table, times included where the events have them."""

    def column(name: str, dtype: str) -> NDArray[Any]:
        return np.array([getattr(event, name) for event in events], dtype=dtype)

    columns: dict[str, Any] = {"kind": [event.kind for event in events]}
    if any(event.start_time is not None for event in events):
        for name in ("start_time", "end_time", "peak_time", "alarm_time"):
            columns[name] = column(name, "datetime64[ns]")
    columns |= {name: column(name, "int64") for name in ("start", "end", "peak", "rows")}
    numbers = ("score", "unit_score", "severity", "probability", "probability_upper")
    columns |= {name: column(name, "float64") for name in numbers}
    columns["level"] = [event.level for event in events]
    columns["signal"] = [event.signal or "" for event in events]
    if any(event.conditions for event in events):
        columns["conditions"] = [event.conditions for event in events]
    if any(event.components for event in events):
        columns["components"] = [
            ", ".join(f"{name} {share:.0%}" for name, share in event.components[:top])
            for event in events
        ]
    columns["channels"] = [
        ", ".join(f"{name} {share:.0%}" for name, share in event.shares[:top]) for event in events
    ]
    columns["expected"] = [
        "; ".join(reading_words(reading) for reading in event.readings[:top]) for event in events
    ]
    columns["partner"] = [event.partner or "" for event in events]
    columns["lasting"] = [event.lasting for event in events]
    return columns


def reading_words(reading: Reading, unit: str = "") -> str:
    """Return e.g. "power 49.6 kW, expected 31.2 to 35.1", as finely as the range asks for."""
    name, value, low, high = reading
    size = (high - low) or abs(value - low) or 1.0
    digits = max(math.ceil(-math.log10(size)) + 1, 0)
    plain = digits <= 9 and max(abs(value), abs(low), abs(high)) < 1e9
    said = [f"{x:,.{digits}f}" if plain else f"{x:.5g}" for x in (value, low, high)]
    expected = said[1] if said[1] == said[2] else f"{said[1]} to {said[2]}"
    return f"{name} {said[0]}{f' {unit}' if unit else ''}, expected {expected}"


def pair_words(event: Event) -> str:
    """Return e.g. "flow and power stopped going together"; empty where no pair is known."""
    if not event.partner or not event.shares:
        return ""
    return f"{event.shares[0][0]} and {event.partner} stopped going together"


def found_words(events: Sequence[Event]) -> str:
    """What was found, counted: "3 anomalies, 1 period without data", or "nothing found"."""
    if not events:
        return "nothing found"
    count = Counter(event.kind for event in events)
    words = [plural(count[ANOMALY], "anomaly", "anomalies")]
    words += [f"{plural(count[NO_DATA], 'period')} without data"] if count[NO_DATA] else []
    outside = f"{count[CONDITIONS]:,} under conditions outside training"
    return ", ".join([*words, outside] if count[CONDITIONS] else words)


_PLAIN = (
    "start", "end", "peak", "kind", "score", "ratio", "probability", "severity", "alarm", "signal",
    "partner", "conditions", "lasting", "normal_rows",
)  # fmt: skip
_STAMPS = ("start_time", "end_time", "peak_time", "alarm_time")


def plain_event(event: Event) -> dict[str, Any]:
    """An event as plain values; `restored_event` takes them back."""
    plain = {name: getattr(event, name) for name in _PLAIN}
    stamps = {name: _stamp(getattr(event, name)) for name in _STAMPS}
    pairs = {name: [list(one) for one in getattr(event, name)] for name in ("shares", "readings")}
    return {**plain, **stamps, **pairs, "groups": list(event.groups)}


def restored_event(plain: Mapping[str, Any]) -> Event:
    """The reverse of `plain_event`."""
    fields: dict[str, Any] = {name: plain[name] for name in _PLAIN}
    fields |= {name: _moment(plain[name]) for name in _STAMPS}
    shares = tuple((str(name), float(share)) for name, share in plain["shares"])
    readings = tuple(Reading(*one) for one in plain["readings"])
    groups = tuple(map(str, plain["groups"]))
    return Event(**fields, shares=shares, readings=readings, groups=groups)


def _stamp(time: np.datetime64 | None) -> int | None:
    return None if time is None else int(time.astype("datetime64[ns]").astype(np.int64))


def _moment(stamp: int | None) -> np.datetime64 | None:
    return None if stamp is None else np.datetime64(stamp, "ns")


def probability(tails: Tails, tops: Mapping[int, int]) -> float:
    """Alarms a row, in normal operation, as strong as an event whose lines rose to these tops.

    The strongest line counts, and any of all lines could have been it.
    """
    each = tails.needed(1.0)
    nats = max(_nats(tails, line, top) - float(each[line]) for line, top in tops.items())
    return min(max(math.exp(-nats), LEAST), 1.0)


def _nats(tails: Tails, line: int, top: int) -> float:
    """−log of how often, a row, an excursion of a line rises so high.

    Evidence cannot be rarer than the nats that it amounts to.
    """
    count, excess = float(tails.count[line]), float(tails.excess[line])
    shape, above = float(tails.shape[line]), max(top - int(tails.level[line]), 0) / excess
    return min(math.log(tails.n_rows / count) + math.log1p(shape * above) / shape, top / UNIT)


def upper_bound(probability: float, n_rows: int) -> float:
    """What a probability is at most, as far as so many normal rows can show.

    The upper end of the 95 % score interval of a Poisson count: 3.84 / n where none was seen.
    """
    count = probability * n_rows
    most = count + _NORMAL**2 / 2 + _NORMAL * math.sqrt(count + _NORMAL**2 / 4)
    return min(most / n_rows, 1.0)


def severity(probability: float) -> float:
    """From 0 for what every row shows towards 100: 50 for one in 10⁶ rows, 80 for one in 10²⁴."""
    decades = -math.log10(probability)
    return 100.0 * decades / (decades + HALF)


def level(severity: float) -> str:
    """The severity in a word."""
    return LEVELS[sum(severity >= bound for bound in BOUNDS)]
