"""Messages to an MQTT broker, at least once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import Any

from vace_ad.live.settings import Text, host_of, key
from vace_ad.live.sinks import Body, Sink, SinkError
from vace_ad.live.sources.mqtt import BrokerSettings, connect, make_client

_SECONDS = 4.0


class Publisher:
    """Publishes at least once, and raises when the broker does not confirm."""

    def __init__(
        self, settings: BrokerSettings, suffix: str, will: tuple[str, str] | None = None
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
        """Wait for a connection; returns its number."""
        if not self._started:
            connect(self._client, self._settings)
            self._started = True
        end = time.monotonic() + _SECONDS
        while not self._client.is_connected():  # else paho would keep a second outbox
            if time.monotonic() > end:
                raise SinkError(f"{host_of(self._settings.url)} cannot be reached")
            time.sleep(0.01)
        return self._session

    def publish(self, topic: str, payload: str, *, retain: bool) -> None:
        """Publish and wait until the broker has it."""
        sent = self._client.publish(topic, payload, qos=1, retain=retain)
        try:
            sent.wait_for_publish(_SECONDS)
        except (RuntimeError, ValueError) as error:
            raise SinkError(f"{host_of(self._settings.url)} refused a message: {error}") from None
        if not sent.is_published():
            raise SinkError(f"{host_of(self._settings.url)} did not confirm within {_SECONDS:g} s")

    def close(self, *last: str) -> None:
        """Disconnect, after a last message (topic, payload) if one is given."""
        if last and self._client.is_connected():
            self._client.publish(*last, qos=1, retain=True).wait_for_publish(1.0)
        self._client.disconnect()
        self._client.loop_stop()


class MqttSinkSettings(BrokerSettings):
    """Keys of the sink."""

    topic: Text = key("vace/alarms/{entity}", "where to; {entity} is the entity's name")
    retain: bool = key(False, "whether the broker retains the last message of each topic")


class MqttSink(Sink[MqttSinkSettings]):
    """One MQTT message for each message."""

    SETTINGS = MqttSinkSettings

    def __init__(self, settings: MqttSinkSettings) -> None:
        super().__init__(settings)
        self._publisher = Publisher(settings, "-alarms")

    def send(self, messages: Sequence[Body]) -> None:
        """Publish messages and wait until the broker has them."""
        self._publisher.connected()
        for message in messages:
            # a name from the network must not choose another level or a wildcard
            name = re.sub(r"[/+#$]", "_", message["entity"] or "source")
            topic = self.settings.topic.replace("{entity}", name)
            self._publisher.publish(topic, json.dumps(message), retain=self.settings.retain)

    def close(self) -> None:
        """Disconnect."""
        self._publisher.close()
