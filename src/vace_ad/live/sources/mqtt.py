"""MQTT: at least once, with manual acknowledgement, in a session that outlives the connection."""

from __future__ import annotations

import json
import queue
import re
import time
from collections import deque
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from vace_ad.errors import needs
from vace_ad.live.records import BadRecordError, Names, Record, from_object, read_name, read_number
from vace_ad.live.settings import FilePath, LoginSettings, Text, Texts, key, url
from vace_ad.live.sources import Batch, Source, parse_all

_SESSION = 7 * 86_400  # seconds that the broker keeps what we missed
_IN_FLIGHT = 10_000  # messages that wait to be used
_LEVEL = re.compile(r"\{(\d+)\}")  # of a topic
MqttUrl = Annotated[str, url("mqtt", "mqtts")]


class BrokerSettings(LoginSettings):
    """Keys of a connection to a broker."""

    url: MqttUrl = key(..., "the broker; mqtts for TLS", '"mqtt://127.0.0.1:1883"')
    client_id: Text = key("vace-watch", "name of the session; one for each watch")
    cert_file: FilePath | None = key(None, "TLS: client certificate", '"watch.pem"')
    key_file: FilePath | None = key(None, "TLS: its key", '"watch.key"')


B = TypeVar("B", bound=BrokerSettings)


def make_client(settings: BrokerSettings, suffix: str = "", **more: Any) -> Any:
    """A paho client with name, password and TLS set, not yet connected."""
    with needs("paho-mqtt", "live", "MQTT"):
        from paho.mqtt import client as paho
        from paho.mqtt.enums import CallbackAPIVersion
    client = paho.Client(
        CallbackAPIVersion.VERSION2, settings.client_id + suffix, protocol=paho.MQTTv5, **more
    )
    if settings.username:
        client.username_pw_set(settings.username, settings.secret("password"))
    if urlsplit(settings.url).scheme == "mqtts":
        ca, cert, key_file = (
            None if file is None else str(file)
            for file in (settings.ca_file, settings.cert_file, settings.key_file)
        )
        client.tls_set(ca, cert, key_file)
    client.reconnect_delay_set(1, 60)
    return client


def connect(client: Any, settings: BrokerSettings) -> None:
    """Start connecting in the background, with a session that the broker keeps."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    parts = urlsplit(settings.url)
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


def name_of(topic: str, pattern: str) -> str:
    """A name out of a topic's levels: "{1}" is its second level, "{1}-{2}" two of them."""
    levels = topic.split("/")
    try:
        return _LEVEL.sub(lambda match: levels[int(match[1])], pattern)
    except IndexError:
        raise BadRecordError(
            f"the topic has {len(levels)} levels, {pattern!r} asks for more"
        ) from None


class BrokerSource(Source[B]):
    """Messages of a broker; a subclass names the topics and reads the payloads."""

    eager, needs_step = True, True

    def __init__(self, settings: B) -> None:
        super().__init__(settings)
        self._inbox: queue.SimpleQueue[tuple[int, Any, int]] = queue.SimpleQueue()
        self._unacknowledged: deque[tuple[int, int, int, int]] = deque()
        self._session = self._count = 0  # connections, and messages
        self._lost = 0  # messages for which there was no room, since the last batch
        self.problem = "not connected yet"
        self._client = make_client(settings, manual_ack=True)
        self._client.on_connect = self._connected
        self._client.on_disconnect = self._disconnected
        self._client.on_message = self._received

    def _topics(self) -> list[str]:
        raise NotImplementedError

    def _records(self, topic: str, payload: bytes, now: int) -> list[Record]:
        raise NotImplementedError

    def open(self, position: Any) -> None:
        """Connect; the broker itself knows what was not acknowledged."""
        connect(self._client, self.settings)

    def _connected(self, client: Any, _user: Any, _flags: Any, reason: Any, _more: Any) -> None:
        self._session += 1
        if reason.is_failure:
            self.problem = f"the broker refused: {reason}"
            return
        client.subscribe([(topic, 1) for topic in self._topics()])
        self.problem = None

    def _disconnected(self, _c: Any, _user: Any, _flags: Any, reason: Any, _more: Any) -> None:
        self.problem = f"disconnected: {reason}"

    def _received(self, _client: Any, _user: Any, message: Any) -> None:
        if not message.qos and self._inbox.qsize() >= _IN_FLIGHT:  # else the broker waits for us
            self._lost += 1
            return
        self._inbox.put((self._session, message, time.time_ns()))

    def read(self, timeout: float) -> Batch | None:
        """The messages that came."""
        messages: list[tuple[Any, int]] = []
        while len(messages) < _IN_FLIGHT:
            try:
                session, message, now = self._inbox.get(timeout > 0, timeout or None)
            except queue.Empty:
                break
            timeout = 0.0
            self._count += 1
            self._unacknowledged.append((self._count, session, message.mid, message.qos))
            messages.append((message, now))
        records, bad, why = parse_all(
            messages, lambda one: self._records(one[0].topic, one[0].payload, one[1])
        )
        lost, self._lost = self._lost, 0
        if lost:
            why = (
                f"{_IN_FLIGHT:,} messages waited, so {lost:,} of QoS 0 were lost: the watch is too "
                "slow; publish with QoS 1, which the broker keeps until they are used"
            )
        return Batch(records, self._count, bad + lost, why) if messages else None

    def acknowledge(self, position: Any) -> None:
        """Tell the broker; a message of an earlier connection will come again and be dropped."""
        while self._unacknowledged and self._unacknowledged[0][0] <= position:
            _, session, mid, qos = self._unacknowledged.popleft()
            if qos and session == self._session and self._client.is_connected():
                self._client.ack(mid, qos)

    def close(self) -> None:
        """Disconnect; the session stays at the broker."""
        self._client.disconnect()
        self._client.loop_stop()


class MqttSettings(BrokerSettings):
    """Keys of the source."""

    topics: Texts = key(..., "topics to subscribe to", '"plant/+/+"')
    entity: Text = key("{1}", "the entity: levels of the topic, from {0}")
    channel: Text = key("{2}", "the channel; a JSON object names channels itself")
    time: Text = key("time", "the field of a JSON payload that holds the time")
    value: Text = key("value", "the field of a JSON payload that holds one value")


class MqttSource(BrokerSource[MqttSettings]):
    """Numbers or JSON objects; the topic names the entity, and the channel of a number."""

    SETTINGS = MqttSettings

    def _topics(self) -> list[str]:
        return list(self.settings.topics)

    def _channel(self, topic: str) -> str:
        return read_name(name_of(topic, self.settings.channel), "a channel")

    def _records(self, topic: str, payload: bytes, now: int) -> list[Record]:
        entity = read_name(name_of(topic, self.settings.entity), "an entity")
        try:
            data = json.loads(payload)
        except (ValueError, RecursionError):
            raise BadRecordError(
                f"the payload is neither a number nor JSON: {payload[:40]!r}"
            ) from None
        if not isinstance(data, dict):
            return [Record(entity, now, {self._channel(topic): read_number(data)})]
        time, value = self.settings.time, self.settings.value
        if value in data and "values" not in data:
            name = self._channel(topic)
            data = {time: data.get(time, now), name: data[value]}
        # The entity is the topic's alone: a payload cannot speak for another.
        return [from_object(data, Names(time, "", "", "", entity), now)]
