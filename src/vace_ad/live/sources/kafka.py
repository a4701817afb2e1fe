"""Kafka: a consumer group whose members share the partitions, and with them the entities.

State does not travel: who gets a partition begins its streams anew, or goes on from its own state
if it had the partition before. Who loses one closes the alarms of its entities.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from vace_ad.errors import MissingExtraError
from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.records import BadRecordError, Names, Record, from_influx, from_json, read_name
from vace_ad.live.sources import Batch
from vace_ad.live.sources.files import NAME_FIELDS, names_of

_MESSAGES = 5000  # of one batch


class KafkaSource:
    """Messages of one or more topics, as JSON or Influx line protocol."""

    FIELDS: Mapping[str, Field] = {
        "servers": Field(f.text, f.REQUIRED, "the brokers", '"127.0.0.1:9092"'),
        "topics": Field(f.texts, f.REQUIRED, "the topics", '"plant"'),
        "group": Field(f.text, "vace-watch", "the consumer group; its members share the entities"),
        "format": Field(f.choice("json", "influx"), "json", "of a message"),
        "key": Field(f.boolean, False, "whether a message's key names the entity"),
        "start": Field(f.choice("earliest", "latest"), "latest", "where the first start begins"),
        "session": Field(
            f.duration, 10 * 10**9, "a member that is silent for so long loses its partitions"
        ),
        "tls": Field(f.boolean, False, "encrypt the connection"),
        "ca_file": Field(
            f.path, None, "TLS: certificates to trust, if not the system's", '"ca.pem"'
        ),
        "username": Field(f.text, None, "for SASL SCRAM-SHA-512", '"watch"'),
        **f.secret("password", "its password"),
        **NAME_FIELDS,
    }
    live, eager = True, False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        try:
            from confluent_kafka import Consumer
        except ImportError as error:
            raise MissingExtraError("Kafka", "confluent-kafka", "live") from error
        self._settings, self._names = settings, names_of(settings)
        self._next: dict[str, dict[str, int]] = {}  # offset to go on from, by topic and partition
        self._partition: dict[str, tuple[str, int]] = {}  # where an entity's messages come from
        self._ours: set[tuple[str, int]] = set()  # partitions that we have now
        self.lost: list[str] = []  # entities whose partition went to another member
        self.problem: str | None = None
        self._consumer = Consumer(self._options())

    def _options(self) -> dict[str, Any]:
        settings = self._settings
        options: dict[str, Any] = {
            "bootstrap.servers": settings["servers"],
            "group.id": settings["group"],
            "enable.auto.commit": False,
            "auto.offset.reset": settings["start"],
            "error_cb": self._failed,
            "log.connection.close": False,
            "session.timeout.ms": settings["session"] // 10**6,
        }
        if settings["tls"]:
            options["security.protocol"] = "SASL_SSL" if settings["username"] else "SSL"
            if settings["ca_file"]:
                options["ssl.ca.location"] = str(settings["ca_file"])
        elif settings["username"]:
            options["security.protocol"] = "SASL_PLAINTEXT"
        if settings["username"]:
            secret = settings.get("password")
            options |= {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": settings["username"],
                "sasl.password": secret.reveal() if secret else "",
            }
        return options

    def _failed(self, error: Any) -> None:
        self.problem = str(error)

    def open(self, position: Any) -> None:
        """Subscribe; partitions that come to us go on where we kept them."""
        self._next = {topic: dict(offsets) for topic, offsets in (position or {}).items()}
        self._consumer.subscribe(
            list(self._settings["topics"]), on_assign=self._assigned, on_revoke=self._revoked
        )

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        """Go on from what we kept, unless another member of the group went further."""
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
        """Partitions go, perhaps only until all are dealt out again: no offsets until then."""
        self._ours -= {(one.topic, one.partition) for one in partitions}

    def read(self, timeout: float) -> Batch | None:
        """The messages that came."""
        messages = self._consumer.consume(_MESSAGES, timeout)
        records: list[Record] = []
        bad, why = 0, ""
        for message in messages:
            if message.error():
                self.problem = str(message.error())
                continue
            self.problem = None
            offsets = self._next.setdefault(str(message.topic()), {})
            offsets[str(message.partition())] = int(message.offset() or 0) + 1
            where = str(message.topic()), int(message.partition() or 0)
            try:
                found = self._records(message)
                self._partition.update((record.entity, where) for record in found)
                records += found
            except (BadRecordError, UnicodeDecodeError) as error:
                bad, why = bad + 1, why or str(error)
        if not messages:
            return None
        position = {topic: dict(offsets) for topic, offsets in self._next.items()}
        return Batch(records, position, bad, why)

    def _records(self, message: Any) -> list[Record]:
        names, now = self._names, time.time_ns()
        stamped = message.timestamp()[1]
        if stamped > 0:
            now = stamped * 10**6
        if self._settings["key"]:
            key = read_name((message.key() or b"").decode("utf-8"), "an entity")
            names = Names(names.time, "", names.channel, names.value, key)
        body = (message.value() or b"").decode("utf-8")
        if self._settings["format"] == "json":
            return list(from_json(body, names, now))
        found = [from_influx(line, names, now) for line in body.splitlines()]
        return [record for record in found if record is not None]

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
