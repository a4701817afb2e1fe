"""MQTT: at-least-once, acknowledged by hand, in a session that outlives the connection."""

from __future__ import annotations

import json
import queue
import re
import time
from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from vace_ad.errors import MissingExtraError
from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.records import BadRecordError, Names, Record, from_object, read_name, read_number
from vace_ad.live.sources import Batch

_SESSION = 7 * 86_400  # seconds that the broker keeps what we missed
_IN_FLIGHT = 10_000
CONNECTION = {
    "url": Field(
        f.url("mqtt", "mqtts"), f.REQUIRED, "the broker; mqtts for TLS", '"mqtt://127.0.0.1:1883"'
    ),
    "client_id": Field(f.text, "vace-watch", "the session's name; one for each watch"),
    "username": Field(f.text, None, "who we are, where the broker asks", '"watch"'),
    **f.secret("password", "the password"),
    "ca_file": Field(f.path, None, "TLS: certificates to trust, if not the system's", '"ca.pem"'),
    "cert_file": Field(f.path, None, "TLS: our certificate", '"watch.pem"'),
    "key_file": Field(f.path, None, "TLS: its key", '"watch.key"'),
}


def make_client(settings: Mapping[str, Any], suffix: str = "", **more: Any) -> Any:
    """A paho client with name, password and TLS set, not yet connected."""
    try:
        from paho.mqtt import client as paho
        from paho.mqtt.enums import CallbackAPIVersion
    except ImportError as error:
        raise MissingExtraError("MQTT", "paho-mqtt", "live") from error
    client = paho.Client(
        CallbackAPIVersion.VERSION2, settings["client_id"] + suffix, protocol=paho.MQTTv5, **more
    )
    if settings["username"]:
        secret = settings.get("password")
        client.username_pw_set(settings["username"], secret.reveal() if secret else None)
    if urlsplit(settings["url"]).scheme == "mqtts":
        ca, cert, key = (
            None if settings[name] is None else str(settings[name])
            for name in ("ca_file", "cert_file", "key_file")
        )
        client.tls_set(ca, cert, key)
    client.reconnect_delay_set(1, 60)
    return client


def connect(client: Any, settings: Mapping[str, Any]) -> None:
    """Start connecting in the background, with a session that the broker keeps."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    parts = urlsplit(settings["url"])
    properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = _SESSION
    properties.ReceiveMaximum = _IN_FLIGHT
    client.connect_async(
        parts.hostname,
        parts.port or (8883 if parts.scheme == "mqtts" else 1883),
        keepalive=30,
        clean_start=False,
        properties=properties,
    )
    client.loop_start()


class Topic:
    """Names out of a topic's levels: "{1}" is its second level, "{1}-{2}" two of them."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._used = [int(number) for number in re.findall(r"\{(\d+)\}", pattern)]

    def name(self, topic: str) -> str:
        """The name that a topic gives."""
        levels = topic.split("/")
        if self._used and max(self._used) >= len(levels):
            raise BadRecordError(
                f"the topic has {len(levels)} levels, {self._pattern!r} asks for more"
            )
        return re.sub(r"\{(\d+)\}", lambda match: levels[int(match[1])], self._pattern)


class MqttSource:
    """Readings that a broker sends."""

    FIELDS: Mapping[str, Field] = {
        **CONNECTION,
        "topics": Field(f.texts, f.REQUIRED, "what to subscribe to", '"plant/+/+"'),
        "entity": Field(f.text, "{1}", "the entity: levels of the topic, from {0}"),
        "channel": Field(f.text, "{2}", "the channel; a JSON object names channels itself"),
        "time": Field(f.text, "time", "the field of a JSON payload that holds the time"),
        "value": Field(f.text, "value", "the field of a JSON payload that holds one value"),
    }
    live, eager = True, True

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._entity, self._channel = Topic(settings["entity"]), Topic(settings["channel"])
        self._inbox: queue.SimpleQueue[tuple[int, Any, int]] = queue.SimpleQueue()
        self._unacknowledged: deque[tuple[int, int, int, int]] = deque()
        self._session = self._count = 0  # connections, and messages
        self.problem: str | None = "not connected yet"
        self._client = make_client(settings, manual_ack=True)
        self._client.on_connect = self._connected
        self._client.on_disconnect = self._disconnected
        self._client.on_message = self._received

    def open(self, position: Any) -> None:
        """Connect; the broker itself knows what was not acknowledged."""
        connect(self._client, self._settings)

    def _connected(self, client: Any, _user: Any, _flags: Any, reason: Any, _more: Any) -> None:
        self._session += 1
        if reason.is_failure:
            self.problem = f"the broker refused: {reason}"
            return
        client.subscribe([(topic, 1) for topic in self._topics()])
        self.problem = None

    def _topics(self) -> list[str]:
        return list(self._settings["topics"])

    def _disconnected(self, _c: Any, _user: Any, _flags: Any, reason: Any, _more: Any) -> None:
        self.problem = f"disconnected: {reason}"

    def _received(self, _client: Any, _user: Any, message: Any) -> None:
        self._inbox.put((self._session, message, time.time_ns()))

    def read(self, timeout: float) -> Batch | None:
        """The messages that came."""
        records: list[Record] = []
        bad, why, end = 0, "", time.monotonic() + timeout
        seen = self._count
        while self._count - seen < _IN_FLIGHT:
            try:
                wait = max(0.0, end - time.monotonic()) if self._count == seen else 0.0
                session, message, now = self._inbox.get(block=wait > 0, timeout=wait or None)
            except queue.Empty:
                break
            self._count += 1
            self._unacknowledged.append((self._count, session, message.mid, message.qos))
            try:
                records += self._records(message.topic, message.payload, now)
            except BadRecordError as error:
                bad, why = bad + 1, why or str(error)
        return Batch(records, self._count, bad, why) if self._count > seen else None

    def _records(self, topic: str, payload: bytes, now: int) -> list[Record]:
        return [self._record(topic, payload, now)]

    def _record(self, topic: str, payload: bytes, now: int) -> Record:
        entity = read_name(self._entity.name(topic), "an entity")
        try:
            data = json.loads(payload)
        except (ValueError, RecursionError):
            raise BadRecordError(
                f"the payload is neither a number nor JSON: {payload[:40]!r}"
            ) from None
        if not isinstance(data, dict):
            name = read_name(self._channel.name(topic), "a channel")
            return Record(entity, now, {name: read_number(data)})
        if self._settings["value"] in data and "values" not in data:
            data = {
                self._settings["time"]: data.get(self._settings["time"], now),
                read_name(self._channel.name(topic), "a channel"): data[self._settings["value"]],
            }
        # The entity is the topic's alone: a payload cannot speak for another.
        return from_object(data, Names(self._settings["time"], "", "", "", entity), now)

    def acknowledge(self, position: Any) -> None:
        """Tell the broker; a message of an earlier connection will come again and be dropped."""
        while self._unacknowledged and self._unacknowledged[0][0] <= position:
            _, session, mid, qos = self._unacknowledged.popleft()
            if qos and session == self._session and self._client.is_connected():
                self._client.ack(mid, qos)

    def close(self) -> None:
        """Leave; the session stays at the broker."""
        self._client.disconnect()
        self._client.loop_stop()
