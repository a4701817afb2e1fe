"""Messages to an MQTT broker, at least once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence

from vace_ad.live.settings import Text, key
from vace_ad.live.sinks import Body, Sink, SinkError
from vace_ad.live.sources.mqtt import BrokerSettings, connect, make_client

_SECONDS = 4.0


class MqttSinkSettings(BrokerSettings):
    """Keys of the sink."""

    topic: Text = key("vace/alarms/{entity}", "where to; {entity} is the entity's name")
    retain: bool = key(False, "whether the broker retains the last message of each topic")


class MqttSink(Sink[MqttSinkSettings]):
    """One MQTT message for each message."""

    SETTINGS = MqttSinkSettings

    def __init__(self, settings: MqttSinkSettings) -> None:
        super().__init__(settings)
        self._client, self._started = make_client(settings, "-alarms"), False

    def send(self, messages: Sequence[Body]) -> None:
        """Publish messages and wait until the broker has them."""
        url = self.settings.url
        if not self._started:
            connect(self._client, self.settings)
            self._started = True
        end = time.monotonic() + _SECONDS
        while not self._client.is_connected():  # else paho would keep a second outbox
            if time.monotonic() > end:
                raise SinkError(f"{url} cannot be reached")
            time.sleep(0.01)
        for message in messages:
            # a name from the network must not choose another level or a wildcard
            name = re.sub(r"[/+#$]", "_", message["entity"] or "source")
            topic = self.settings.topic.replace("{entity}", name)
            sent = self._client.publish(
                topic, json.dumps(message), qos=1, retain=self.settings.retain
            )
            try:
                sent.wait_for_publish(_SECONDS)
            except (RuntimeError, ValueError) as error:
                raise SinkError(f"{url} took no message: {error}") from None
            if not sent.is_published():
                raise SinkError(f"{url} did not confirm within {_SECONDS:g} s")

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()
