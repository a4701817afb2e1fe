"""Incidents of a watch: alarms of several entities that open within a short time.

Alarms are grouped as they open, when no end is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from vace_ad.alarms.incidents import Grouping, Incident
from vace_ad.live.alarms import Message
from vace_ad.wording import listed, plural


class Incidents:
    """The incident of each alarm, which stays the same until the alarm is resolved."""

    def __init__(self, within: int, known: Callable[[str], str | None]) -> None:
        """Alarms that open `within` nanoseconds are one; `known` tells what was kept of an alarm.

        0 leaves each alarm alone.
        """
        self._grouping, self._known = Grouping(within), known
        self._of: dict[str, str] = {}  # incident of each open alarm

    def facts(self, message: Message) -> dict[str, Any]:
        """The fields of a message about its incident."""
        alarm = message.alarm
        if message.what == "open":
            incident = self._grouping.join(alarm.id, alarm.entity, message.time)
            self._of[alarm.id] = incident.id
        else:
            found = self._of.get(alarm.id) or self._known(alarm.id) or alarm.id
            alone = Incident(found, message.time, [alarm.entity], 1)
            incident = next((one for one in self._grouping.recent if one.id == found), alone)
        if message.what == "resolve":
            self._of.pop(alarm.id, None)
        return {
            "incident": incident.id,
            "joined": incident.id != alarm.id,
            "entities": list(incident.entities),
            "n_entities": incident.n_entities,
        }

    def state(self) -> str:
        """The incidents that may still be joined; alarms are kept with theirs."""
        return json.dumps([asdict(one) for one in self._grouping.recent])

    def restore(self, state: str | None) -> None:
        """The reverse of `state`."""
        self._grouping.recent = [Incident(**one) for one in json.loads(state or "[]")]


def merged(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One message for each incident and change, in the order in which they came."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for message in messages:
        incident = message.get("incident") or message["alarm"]
        groups.setdefault((incident, message["what"]), []).append(message)
    return [group[0] if len(group) == 1 else _merge(group) for group in groups.values()]


def _merge(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several messages of one incident as one, led by its strongest alarm."""
    lead = max(group, key=lambda one: one["severity"] or 0.0)
    names = list(dict.fromkeys(one["entity"] or "source" for one in group))
    who = plural(len(names), "entity", "entities")
    return {
        "id": f"{group[0]['id']}+{len(group) - 1}",
        "what": lead["what"],
        "incident": lead["incident"],
        "time": max(one["time"] for one in group),
        "entities": names,
        "summary": f"{who} ({listed(names)}); the strongest is {lead['summary']}",
        "link": lead["link"],
        "alarms": [dict(one) for one in group],
    }
