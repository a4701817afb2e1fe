"""Home Assistant by MQTT discovery: alarms, scores and suspects appear there automatically."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Sequence
from hashlib import sha256
from math import isfinite
from typing import Any

from vace_ad.alarms.events import ANOMALY
from vace_ad.live.settings import Duration, Text, key
from vace_ad.live.sinks import Body, RowSink, Scored
from vace_ad.live.sinks.mqtt import Publisher
from vace_ad.live.sources.mqtt import BrokerSettings
from vace_ad.version import __version__

_LONGEST = 255  # characters that a state of Home Assistant may have


class HomeAssistantSettings(BrokerSettings):
    """Keys of the sink."""

    discovery: Text = key("homeassistant", "the discovery prefix of Home Assistant")
    topic: Text = key("vace", "states go to TOPIC/ENTITY/state")
    every: Duration = key("30s", "shortest time between two scores; alarms are sent at once")


class HomeAssistantSink(RowSink[HomeAssistantSettings]):
    """A device for each entity: a problem (on or off), its score, and the suspects."""

    SETTINGS = HomeAssistantSettings
    repeat = 600 * 10**9  # open alarms again, after a restart too
    repeat_acknowledged = True

    def __init__(self, settings: HomeAssistantSettings) -> None:
        super().__init__(settings)
        self._status = f"{settings.topic}/status"
        self._publisher = Publisher(settings, "-homeassistant", will=(self._status, "offline"))
        self._lock = threading.Lock()
        self._announced: set[str] = set()  # entities that Home Assistant knows, in this session
        self._session = -1
        self._scores: dict[str, float] = {}  # that are not sent yet
        self._open: dict[str, dict[str, Body]] = {}  # open alarms by entity
        self._known: dict[str, float | None] = {}  # the last score by entity
        self._sent = 0.0

    def rows(self, scored: Scored) -> None:
        """Keep the newest score of each entity until the next flush."""
        known = [score for score in scored.scores if isfinite(score)]
        if known:
            with self._lock:
                self._scores[scored.entity] = known[-1]

    def flush(self) -> bool:
        """Send scores, where it is time."""
        now = time.monotonic()
        if now - self._sent < self.settings.every / 1e9:
            return False
        with self._lock:
            scores, self._scores = self._scores, {}
        try:
            for entity, score in scores.items():
                self._known[entity] = score
                self._publish(entity)
        except BaseException:
            with self._lock:
                self._scores = {**scores, **self._scores}
            raise
        self._sent = now
        return bool(scores)

    def send(self, messages: Sequence[Body]) -> None:
        """Publish the open alarms of every entity in these messages."""
        names = []
        for message in messages:
            name = message["entity"] or "source"
            mine = self._open.setdefault(name, {})
            mine.pop(message["alarm"], None)
            if message["what"] != "resolve":
                mine[message["alarm"]] = message
            names.append(name)
        for name in dict.fromkeys(names):
            self._publish(name)

    def _publish(self, entity: str) -> None:
        """Publish the state of an entity; before the first one, its discovery messages."""
        session = self._publisher.connected()
        if session != self._session:  # the broker may have forgotten what it kept
            self._session, self._announced = session, set()
            self._publisher.publish(self._status, "online", retain=True)
        if entity not in self._announced:
            for topic, config in discovery(entity, self.settings).items():
                self._publisher.publish(topic, json.dumps(config), retain=True)
            self._announced.add(entity)
        topic = f"{self.settings.topic}/{key_of(entity)}/state"
        self._publisher.publish(topic, json.dumps(self._state(entity)), retain=True)

    def _state(self, entity: str) -> dict[str, Any]:
        mine = list(self._open.get(entity, {}).values())
        worst: Body = max(
            mine, key=lambda one: (one["kind"] == ANOMALY, one["severity"] or 0.0), default={}
        )
        names = ", ".join(one["name"] for one in worst.get("channels", ()))
        return {
            "alarm": "ON" if mine else "OFF",
            "score": self._known.get(entity),
            "suspects": (names or worst.get("channel") or "none")[:_LONGEST],
            "severity": worst.get("severity"),
            "kind": worst.get("kind"),
            "since": worst.get("onset"),
            "summary": worst.get("summary", ""),
        }

    def close(self) -> None:
        """Publish "offline", as the broker does when the connection is lost."""
        self._publisher.close(self._status, "offline")


def key_of(entity: str) -> str:
    """An entity's name in topics and ids: [a-zA-Z0-9_-], and different for different names."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", entity)[:40]
    return plain if plain == entity else f"{plain}-{sha256(entity.encode()).hexdigest()[:8]}"


def discovery(entity: str, settings: HomeAssistantSettings) -> dict[str, dict[str, Any]]:
    """The discovery messages of an entity, by topic."""
    slug, prefix = key_of(entity), settings.discovery
    shared = {
        "state_topic": f"{settings.topic}/{slug}/state",
        "availability_topic": f"{settings.topic}/status",
        "device": {
            "identifiers": [f"vace_{slug}"],
            "name": entity,
            "manufacturer": "vace-ad",
            "model": "vace watch",
            "sw_version": __version__,
        },
        "origin": {"name": "vace-ad", "sw_version": __version__},
    }
    parts: dict[str, tuple[str, dict[str, Any]]] = {
        "alarm": ("binary_sensor", {
            "device_class": "problem", "json_attributes_topic": shared["state_topic"],
        }),
        "score": ("sensor", {
            "state_class": "measurement", "suggested_display_precision": 2,
            "icon": "mdi:chart-bell-curve",
        }),
        "suspects": ("sensor", {"icon": "mdi:magnify"}),
    }  # fmt: skip
    return {
        f"{prefix}/{component}/vace_{slug}/{part}/config": {
            **shared,
            "name": part.capitalize(),
            "value_template": f"{{{{ value_json.{part} }}}}",
            "unique_id": f"vace_{slug}_{part}",
            **own,
        }
        for part, (component, own) in parts.items()
    }
