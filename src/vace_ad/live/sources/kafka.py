"""Kafka: a consumer group whose members share the partitions, and with them the entities.

State is local: a member that gets a partition starts its streams, or continues from its own state
if it had the partition before. A member that loses one resolves the alarms of its entities.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from vace_ad.errors import needs
from vace_ad.live.records import Names, Record, from_influx, from_json, read_name
from vace_ad.live.settings import Duration, LoginSettings, Text, Texts, key
from vace_ad.live.sources import Batch, NameSettings, Source, parse_all

_MESSAGES = 5000  # of one batch


class KafkaSettings(NameSettings, LoginSettings):
    """Keys of the source."""

    servers: Text = key(..., "the brokers", '"127.0.0.1:9092"')
    topics: Texts = key(..., "the topics", '"plant"')
    group: Text = key("vace-watch", "the consumer group; its members share the entities")
    format: Literal["json", "influx"] = key("json", "format of a message")
    start: Literal["earliest", "latest"] = key("latest", "where the first start begins")
    session: Duration = key("10s", "a member without heartbeat for this long loses its partitions")
    tls: bool = key(False, "encrypt the connection; a user logs in by SASL SCRAM-SHA-512")
    key: bool = key(False, "whether a message's key names the entity")  # last: shadows `key`


class KafkaSource(Source[KafkaSettings]):
    """Messages of one or more topics, as JSON or Influx line protocol."""

    SETTINGS = KafkaSettings

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings)
        with needs("confluent-kafka", "live", "Kafka"):
            from confluent_kafka import Consumer
        self._names = settings.names()
        self._next: dict[str, dict[str, int]] = {}  # offset to go on from, by topic and partition
        self._partition: dict[str, tuple[str, int]] = {}  # where an entity's messages come from
        self._ours: set[tuple[str, int]] = set()  # partitions that we have now
        self._consumer = Consumer(self._options())

    def _options(self) -> dict[str, Any]:
        settings = self.settings
        options: dict[str, Any] = {
            "bootstrap.servers": settings.servers,
            "group.id": settings.group,
            "enable.auto.commit": False,
            "auto.offset.reset": settings.start,
            "error_cb": self._failed,
            "log.connection.close": False,
            "session.timeout.ms": settings.session // 10**6,
        }
        protocol = "SSL" if settings.tls else "PLAINTEXT"
        if settings.tls and settings.ca_file:
            options["ssl.ca.location"] = str(settings.ca_file)
        if settings.username:
            protocol = f"SASL_{protocol}"
            options |= {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": settings.username,
                "sasl.password": settings.secret("password") or "",
            }
        return {**options, "security.protocol": protocol.lower()}

    def _failed(self, error: Any) -> None:
        self.problem = str(error)

    def open(self, position: Any) -> None:
        """Subscribe; assigned partitions continue from the stored offsets."""
        self._next = {topic: dict(offsets) for topic, offsets in (position or {}).items()}
        self._consumer.subscribe(
            list(self.settings.topics), on_assign=self._assigned, on_revoke=self._revoked
        )

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        """Continue from the stored offsets, unless another member of the group went further."""
        from confluent_kafka import KafkaException

        try:
            group = consumer.committed(partitions, 10)
        except KafkaException as error:
            self.problem = f"the group's offsets cannot be read: {error}"
            group = partitions
        for one, committed in zip(partitions, group, strict=True):
            ours = self._next.get(one.topic, {}).get(str(one.partition), -1)
            if max(ours, committed.offset) >= 0:
                one.offset = max(ours, committed.offset)
        consumer.assign(partitions)
        self._ours = {(one.topic, one.partition) for one in partitions}
        for name, where in list(self._partition.items()):
            if where not in self._ours:
                self.lost.append(name)
                del self._partition[name]
        self.problem = None

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        """Partitions are revoked, perhaps only during a rebalance: commit no offsets of them."""
        self._ours -= {(one.topic, one.partition) for one in partitions}

    def read(self, timeout: float) -> Batch | None:
        """The messages that came."""
        messages = self._consumer.consume(_MESSAGES, timeout)
        good = []
        for message in messages:
            if message.error():
                self.problem = str(message.error())
                continue
            self.problem = None
            offsets = self._next.setdefault(str(message.topic()), {})
            offsets[str(message.partition())] = int(message.offset() or 0) + 1
            good.append(message)
        if not messages:
            return None
        position = {topic: dict(offsets) for topic, offsets in self._next.items()}
        records, bad, why = parse_all(good, self._records)
        return Batch(records, position, bad, why)

    def _records(self, message: Any) -> list[Record]:
        names, now = self._names, time.time_ns()
        stamped = message.timestamp()[1]
        if stamped > 0:
            now = stamped * 10**6
        if self.settings.key:
            name = read_name((message.key() or b"").decode("utf-8"), "an entity")
            names = Names(names.time, "", names.channel, names.value, name)
        body = (message.value() or b"").decode("utf-8")
        if self.settings.format == "json":
            found = from_json(body, names, now)
        else:
            found = from_influx(body, names, now)
        where = str(message.topic()), int(message.partition() or 0)
        self._partition.update((record.entity, where) for record in found)
        return found

    def acknowledge(self, position: Any) -> None:
        """Commit the offsets to the group."""
        from confluent_kafka import KafkaException, TopicPartition

        offsets = [
            TopicPartition(topic, int(partition), offset)
            for topic, partitions in position.items()
            for partition, offset in partitions.items()
            if (topic, int(partition)) in self._ours  # never put back what another member has
        ]
        try:
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:  # another member has the partition now
            self.problem = f"offsets not committed: {error}"

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
