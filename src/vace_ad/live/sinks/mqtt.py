"""Messages to an MQTT broker, at least once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.sinks import Body, SinkError
from vace_ad.live.sources.mqtt import CONNECTION, connect, make_client

_SECONDS = 4.0


class Publisher:
    """Publishes at least once, and says so when the broker does not confirm."""

    def __init__(
        self, settings: Mapping[str, Any], suffix: str, will: tuple[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._client = make_client(settings, suffix)
        self._client.on_connect = self._connected
        if will is not None:
            self._client.will_set(*will, qos=1, retain=True)
        self._started, self._session = False, 0

    def _connected(self, *_: Any) -> None:
        self._session += 1

    def connected(self) -> int:
        """The number of this connection, once there is one."""
        if not self._started:
            connect(self._client, self._settings)
            self._started = True
        end = time.monotonic() + _SECONDS
        while not self._client.is_connected():  # else paho would keep a second outbox
            if time.monotonic() > end:
                raise SinkError(f"{self._settings['url']} cannot be reached")
            time.sleep(0.01)
        return self._session

    def publish(self, topic: str, payload: str, *, retain: bool) -> None:
        """Publish and wait until the broker has it."""
        told = self._client.publish(topic, payload, qos=1, retain=retain)
        try:
            told.wait_for_publish(_SECONDS)
        except (RuntimeError, ValueError) as error:
            raise SinkError(f"{self._settings['url']} took no message: {error}") from None
        if not told.is_published():
            raise SinkError(f"{self._settings['url']} did not confirm within {_SECONDS:g} s")

    def close(self, *last: str) -> None:
        """Leave, after a last message (topic, payload) where there is one and a connection."""
        if last and self._client.is_connected():
            self._client.publish(*last, qos=1, retain=True).wait_for_publish(1.0)
        self._client.disconnect()
        self._client.loop_stop()


class MqttSink:
    """One message each, retained where wanted."""

    FIELDS: Mapping[str, Field] = {
        **CONNECTION,
        "topic": Field(f.text, "vace/alarms/{entity}", "where to; {entity} is the entity's name"),
        "retain": Field(f.boolean, False, "whether the broker keeps the last one of each topic"),
    }
    repeat: int | None = None
    repeat_acknowledged = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._publisher = Publisher(settings, "-alarms")

    def send(self, messages: Sequence[Body]) -> None:
        """Publish them and wait until the broker has them."""
        self._publisher.connected()
        for message in messages:
            # a name from the wire must not choose another level or a wildcard
            name = re.sub(r"[/+#$]", "_", message["entity"] or "source")
            topic = self._settings["topic"].replace("{entity}", name)
            self._publisher.publish(topic, json.dumps(message), retain=self._settings["retain"])

    def close(self) -> None:
        """Leave."""
        self._publisher.close()
