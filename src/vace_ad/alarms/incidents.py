"""Incidents: events of several machines at the same time are one, with a list.

An event joins an incident that began within a given time of it, while nine tenths of the incident's
events are still going on. To overlap with one of them would not be enough: where there are many
machines, faults that have nothing to do with each other would form a chain without end.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

_ENDED = 0.1  # share of an incident's events that may be over when another one joins
_RECENT = 32  # incidents that an event may still join: a replay brings entities one by one
_NAMED = 50  # entities that an incident names


@dataclass
class Incident:
    """Events of one entity, or of several at once."""

    id: str  # of the first event
    since: int  # when that one began: nanoseconds, or rows
    entities: list[str] = field(default_factory=list)  # the first ones
    n_entities: int = 0
    n_events: int = 0
    ends: list[int] = field(default_factory=list)  # of events whose end is known, sorted


class Grouping:
    """The incident of each event, as events begin; what ends is known of some, or of none yet."""

    def __init__(self, within: int | None = None) -> None:
        """Events that begin `within` this time of an incident may join it.

        None is any time; 0 leaves each event alone.
        """
        self._within = within
        self.recent: list[Incident] = []

    def join(self, id: str, entity: str, start: int, end: int | None = None) -> Incident:
        """The incident of an event; a new one takes the event's id."""
        near = (one for one in self.recent if self._takes(one, start))
        incident = next(near, None)
        if incident is None:
            incident = Incident(id, start)
            self.recent = [*self.recent, incident][-_RECENT:]
        incident.n_events += 1
        if end is not None:
            insort(incident.ends, end)
        if entity not in incident.entities:
            incident.n_entities += 1
            if len(incident.entities) < _NAMED:
                incident.entities.append(entity)
        return incident

    def _takes(self, incident: Incident, start: int) -> bool:
        if self._within is not None and not abs(start - incident.since) <= self._within:
            return False
        over = bisect_left(incident.ends, start)
        return self._within != 0 and over <= _ENDED * incident.n_events
