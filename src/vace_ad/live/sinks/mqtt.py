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
        self._client = make_client(settings, "-alarms")
        self._started = False

    def send(self, messages: Sequence[Body]) -> None:
        """Publish them and wait until the broker has them."""
        if not self._started:
            connect(self._client, self._settings)
            self._started = True
        end = time.monotonic() + _SECONDS
        while not self._client.is_connected():  # else paho would keep a second outbox
            if time.monotonic() > end:
                raise SinkError(f"{self._settings['url']} cannot be reached")
            time.sleep(0.01)
        for message in messages:
            # a name from the wire must not choose another level or a wildcard
            name = re.sub(r"[/+#$]", "_", message["entity"] or "source")
            topic = self._settings["topic"].replace("{entity}", name)
            told = self._client.publish(
                topic, json.dumps(message), qos=1, retain=self._settings["retain"]
            )
            try:
                told.wait_for_publish(_SECONDS)
            except (RuntimeError, ValueError) as error:
                raise SinkError(f"{self._settings['url']} took no message: {error}") from None
            if not told.is_published():
                raise SinkError(f"{self._settings['url']} did not confirm within {_SECONDS:g} s")

    def close(self) -> None:
        """Leave."""
        self._client.disconnect()
        self._client.loop_stop()
