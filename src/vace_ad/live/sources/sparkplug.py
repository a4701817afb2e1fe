"""Sparkplug B over MQTT: births name the metrics, data refer to them, a death is silence.

Topics are `spBv1.0/GROUP/TYPE/NODE` and `spBv1.0/GROUP/TYPE/NODE/DEVICE`. A birth lists all metrics
with names, types and, mostly, short numbers (aliases) that data use in place of the names.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from vace_ad.live.protobuf import Messages, message_class
from vace_ad.live.records import BadRecordError, Record, read_name, read_number
from vace_ad.live.settings import Text, key
from vace_ad.live.sources.mqtt import BrokerSettings, BrokerSource

SPACE = "spBv1.0"
_SIGNED = {1: 8, 2: 16, 3: 32, 4: 64}  # Int8 to Int64: bits
_NUMBERS = {*range(1, 12)}  # types: the integers, Float, Double, Boolean
_BOOLEAN = 11
_CONTROL = ("Node Control/", "Device Control/")  # commands that a node offers, no readings
_MOST, _NODES = 100_000, 10_000  # metrics of one node; nodes
_LATEST = 2**62 // 10**6  # milliseconds
_AGAIN = 30.0  # seconds until a node is asked for its birth once more
# The fields of the protocol's Payload that are read.
_MESSAGES: Messages = {
    "Metric": {
        "name": (1, "BYTES"), "alias": (2, "UINT64"), "timestamp": (3, "UINT64"),
        "datatype": (4, "UINT32"), "is_null": (7, "BOOL"), "int_value": (10, "UINT32"),
        "long_value": (11, "UINT64"), "float_value": (12, "FLOAT"), "double_value": (13, "DOUBLE"),
        "boolean_value": (14, "BOOL"),
    },
    "Payload": {"timestamp": (1, "UINT64"), "metrics": (2, "Metric")},
}  # fmt: skip
_VALUES = [name for name in _MESSAGES["Metric"] if name.endswith("_value")]


class Metric(NamedTuple):
    """One metric of a payload; what is not in it is None."""

    name: str | None = None
    alias: int | None = None
    time: int | None = None  # milliseconds
    kind: int | None = None  # type
    null: bool = False
    value: int | float | None = None  # as sent: integers have no sign yet


@cache
def _payload_type() -> Any:
    """The class of a payload."""
    return message_class(_MESSAGES, "proto2", "live", "Sparkplug B")


def read_payload(data: bytes) -> tuple[int | None, list[Metric]]:
    """The time in milliseconds and the metrics of a payload."""
    from google.protobuf.message import DecodeError

    kind = _payload_type()
    try:
        payload = kind.FromString(data)
        metrics = [_metric(one) for one in payload.metrics]
    except (DecodeError, UnicodeDecodeError) as error:
        raise BadRecordError(f"not a Sparkplug B payload: {error}") from None
    return _get(payload, "timestamp"), metrics


def _get(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _metric(message: Any) -> Metric:
    name = _get(message, "name")
    value = next((getattr(message, one) for one in _VALUES if message.HasField(one)), None)
    return Metric(
        None if name is None else name.decode(), _get(message, "alias"), _get(message, "timestamp"),
        _get(message, "datatype"), message.is_null, value,
    )  # fmt: skip


def number_of(metric: Metric, kind: int | None) -> float:
    """The value as a number of its type; NaN for null and for what is not finite."""
    value = metric.value
    if metric.null or value is None:
        return float("nan")
    bits = _SIGNED.get(kind or 0)
    if bits is not None and isinstance(value, int):  # two's complement
        value &= 2**bits - 1
        value -= 2**bits if value >= 2 ** (bits - 1) else 0
    return read_number(value)


class SparkplugSettings(BrokerSettings):
    """Keys of the source."""

    group: Text = key("+", "the group to watch; + is every group")
    rebirth: bool = key(True, "ask a node for its birth when its data cannot be read")


class SparkplugSource(BrokerSource[SparkplugSettings]):
    """Metrics of edge nodes and their devices, each an entity: GROUP/NODE or GROUP/NODE/DEVICE."""

    SETTINGS = SparkplugSettings

    def __init__(self, settings: SparkplugSettings) -> None:
        super().__init__(settings)
        self._nodes: dict[str, dict[str, dict[int, str]]] = {}  # names by node, device and alias
        self._kinds: dict[str, dict[str, int | None]] = {}  # types by entity and name
        self._births: dict[str, float] = {}  # bdSeq: the number of a node's birth, and of its death
        self._asked: dict[str, float] = {}  # when a node was asked for its birth

    def _topics(self) -> list[str]:
        types = ("NBIRTH", "NDEATH", "NDATA", "DBIRTH", "DDEATH", "DDATA")
        rest = {"N": "+", "D": "+/+"}
        group = self.settings.group
        return [f"{SPACE}/{group}/{kind}/{rest[kind[0]]}" for kind in types]

    def _records(self, topic: str, payload: bytes, now: int) -> list[Record]:
        _, group, kind, *rest = topic.split("/")
        node, device = f"{group}/{rest[0]}", "/".join(rest[1:])
        entity = read_name(f"{node}/{device}" if device else node, "an entity")
        moment, metrics = read_payload(payload)
        if kind == "DDEATH" or (kind == "NDEATH" and not self._outlived(node, metrics)):
            self._died(node, entity, whole_node=kind == "NDEATH")
        if kind.endswith("DEATH"):
            return []
        if kind.endswith("BIRTH"):
            self._born(node, device, entity, metrics)
        if entity in self.silent:
            self.silent.remove(entity)
        by_time: dict[int, dict[str, float]] = {}
        for name, value, when in self._read(node, device, entity, metrics):
            stamp = when if when is not None else moment
            by_time.setdefault(now if stamp is None else _nanoseconds(stamp), {})[name] = value
        return [Record(entity, stamp, values) for stamp, values in by_time.items()]

    def _outlived(self, node: str, metrics: list[Metric]) -> bool:
        """Whether a death belongs to an earlier birth: the broker tells it late."""
        number = _birth_number(metrics)
        return number is not None and self._births.get(node, number) != number

    def _died(self, node: str, entity: str, *, whole_node: bool) -> None:
        """A device, or a node with all of its devices, is gone until its next birth."""
        gone = [entity]
        if whole_node:
            gone += [f"{node}/{device}" for device in self._nodes.pop(node, {}) if device]
        for name in gone:
            self._kinds.pop(name, None)
            if name not in self.silent:
                self.silent.append(name)

    def _born(self, node: str, device: str, entity: str, metrics: list[Metric]) -> None:
        """Learn names, types and aliases; a node's birth makes void all that it said before."""
        if node not in self._nodes and len(self._nodes) >= _NODES:
            raise BadRecordError(f"more than {_NODES:,} nodes")
        if not device:
            self._nodes[node], number = {}, _birth_number(metrics)
            if number is not None:
                self._births[node] = number
        devices = self._nodes.setdefault(node, {})
        if len(metrics) + sum(map(len, devices.values())) > _MOST:
            raise BadRecordError(f"{node} has more than {_MOST:,} metrics")
        aliases: dict[int, str] = {}
        self._kinds[entity] = kinds = {}
        other = []
        for metric in metrics:
            if metric.name is None:
                raise BadRecordError("a metric of a birth has no name")
            kinds[metric.name] = metric.kind
            if metric.alias is not None:
                aliases[metric.alias] = metric.name
            if metric.kind not in _NUMBERS and not _is_own(metric.name):
                other.append(metric.name)
        devices[device] = aliases
        self._asked.pop(node, None)
        if other:
            self.notes.append(f"{entity}: no numbers, so not watched: {', '.join(other[:5])}"[:500])

    def _read(
        self, node: str, device: str, entity: str, metrics: list[Metric]
    ) -> Iterator[tuple[str, float, int | None]]:
        """Name, value and time of each metric that is a number."""
        kinds = self._kinds.get(entity)
        aliases = self._nodes.get(node, {}).get(device, {})
        for metric in metrics:
            name = metric.name
            if name is None and metric.alias is not None:
                name = aliases.get(metric.alias)
            if name is None or kinds is None:
                self._ask(node)
                raise BadRecordError(f"data of {entity} before its birth, or with a new alias")
            kind = kinds.get(name) if metric.kind is None else metric.kind
            if kind in _NUMBERS and not _is_own(name):
                yield read_name(name, "a channel"), number_of(metric, kind), metric.time

    def _ask(self, node: str) -> None:
        """Ask a node for its birth: `Node Control/Rebirth`, as every host application does."""
        now = time.monotonic()
        if not self.settings.rebirth or now - self._asked.get(node, -_AGAIN) < _AGAIN:
            return
        self._asked[node] = now
        group, _, name = node.partition("/")
        self._client.publish(f"{SPACE}/{group}/NCMD/{name}", rebirth(time.time_ns() // 10**6))


def rebirth(moment: int) -> bytes:
    """The payload that asks for a birth; `moment` in milliseconds."""
    payload = _payload_type()(timestamp=moment)
    payload.metrics.add(name=b"Node Control/Rebirth", datatype=_BOOLEAN, boolean_value=True)
    data: bytes = payload.SerializeToString()
    return data


def _nanoseconds(stamp: int) -> int:
    if stamp >= _LATEST:
        raise BadRecordError(f"{stamp} is not a time in milliseconds")
    return stamp * 10**6


def _birth_number(metrics: list[Metric]) -> float | None:
    return next((one.value for one in metrics if one.name == "bdSeq"), None)


def _is_own(name: str) -> bool:
    """Whether a metric is the protocol's own."""
    return name == "bdSeq" or name.startswith(_CONTROL)
