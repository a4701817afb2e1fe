"""One contract for every source: whatever comes, in whatever way, the same rows are made of it.

Each source gets the same readings in its own form: in order, late, twice, out of order, with a
channel that is new and one that ends, of an entity that comes and goes, and across a restart. The
rows must be those of the readings themselves. Where more comes than is used, the sender waits, or
what is lost is counted.
"""

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from live.feeds import START, STEP
from vace_ad.live.align import Aligner
from vace_ad.live.plugins import kinds
from vace_ad.live.records import Record
from vace_ad.live.sections import Align
from vace_ad.live.settings import read_settings
from vace_ad.live.sources.push import FullError
from vace_ad.live.sources.sparkplug import _payload_type

RULE = Align(step=STEP, lateness=2 * STEP)


def reading(step, channel, value, entity="plant/p1"):
    return Record(entity, START + step * STEP, {channel: float(value)})


READINGS = [
    *(reading(i, name, i + j) for i in range(6) for j, name in enumerate(("flow", "level"))),
    reading(7, "flow", 7), reading(6, "flow", 6),  # out of order
    reading(7, "flow", 7),  # twice
    reading(4, "level", 99),  # late, and still put in place or dropped by the same rule
    reading(0, "flow", 99),  # far too late
    *(reading(i, "power", 10 * i) for i in range(8, 12)),  # a channel that is new, others end
    *(reading(i, "flow", i, "plant/p2") for i in range(8, 10)),  # an entity that comes and goes
    *(reading(i, "power", 10 * i) for i in range(12, 16)),
]  # fmt: skip


class Files:
    """Lines of a growing file; a restart reads from the position that was kept."""

    def __init__(self, kind, folder, line, head=""):
        self._path, self._line = folder / f"feed.{kind}", line
        self._path.write_text(head)
        self.settings = {"path": str(self._path)}

    def send(self, source, record):
        with self._path.open("a") as file:
            file.write(self._line(record) + "\n")

    def again(self, source, records):
        """A file keeps what was not acknowledged."""


class Pushed:
    """Requests; the sender sends again what was not answered."""

    def __init__(self, parse):
        self._parse, self.settings = parse, {}

    def send(self, source, record):
        source.push(self._parse(source, record))

    def again(self, source, records):
        for record in records:
            self.send(source, record)


class Mqtt(Pushed):
    """Messages as the client hands them over; the broker sends again what was not confirmed."""

    connects = True

    def __init__(self):
        self.settings = {"url": "mqtt://127.0.0.1:1", "topics": "+/+/+", "entity": "{0}/{1}"}

    def send(self, source, record, qos=1):
        entity, time, name, value = one(record)
        self.message(source, f"{entity}/{name}", as_value(time, value), qos)

    def message(self, source, topic, payload, qos=1):
        sent = SimpleNamespace(topic=topic, payload=payload, mid=1, qos=qos)
        source._received(None, None, sent)


class Sparkplug(Mqtt):
    """A node is born before its first data, of every session."""

    def __init__(self):
        self.settings, self._born = {"url": "mqtt://127.0.0.1:1"}, set()

    def send(self, source, record):
        entity, time, name, value = one(record)
        group, node = entity.split("/")
        if (id(source), entity) not in self._born:
            self._born.add((id(source), entity))
            birth = _payload_type()(timestamp=time // 10**6)
            birth.metrics.add(name=b"bdSeq", datatype=8, long_value=0)
            self.message(source, f"spBv1.0/{group}/NBIRTH/{node}", birth.SerializeToString())
        data = _payload_type()(timestamp=time // 10**6)
        data.metrics.add(name=name.encode(), datatype=10, double_value=value)
        self.message(source, f"spBv1.0/{group}/NDATA/{node}", data.SerializeToString())


class OpcUa(Pushed):
    """Values as the client hands them over; a subscription has nothing to send again."""

    connects = True

    def __init__(self):
        self.settings = {"url": "opc.tcp://127.0.0.1:1", "folder": "i=85"}

    def send(self, source, record):
        entity, time, name, value = one(record)
        source._put(entity, name, time, value)


class Kafka:
    """A partition; a restart reads from the position that was kept."""

    def __init__(self, monkeypatch):
        self.settings, self.log = {"servers": "127.0.0.1:1", "topics": "plant"}, []
        monkeypatch.setattr("confluent_kafka.Consumer", lambda options: Consumer(self.log))

    def send(self, source, record):
        self.log.append(as_json(record).encode())

    def again(self, source, records):
        """A partition keeps what was not acknowledged."""


class Consumer:
    """The calls of a consumer of librdkafka that the source makes, over a list of messages."""

    def __init__(self, log):
        self._log, self._at = log, 0

    def subscribe(self, topics, on_assign, on_revoke):
        from confluent_kafka import TopicPartition

        on_assign(self, [TopicPartition(topics[0], 0)])

    def committed(self, partitions, timeout):
        return partitions

    def assign(self, partitions):
        self._at = max(0, partitions[0].offset)

    def consume(self, most, timeout):
        first, self._at = self._at, min(len(self._log), self._at + most)
        return [self._message(i) for i in range(first, self._at)]

    def _message(self, i):
        answers = {"error": None, "topic": "plant", "partition": 0, "offset": i, "key": None,
                   "value": self._log[i], "timestamp": (0, -1)}  # fmt: skip
        return SimpleNamespace(**{name: lambda a=answer: a for name, answer in answers.items()})

    def commit(self, offsets, asynchronous):
        pass

    def close(self):
        pass


def one(record):
    ((name, value),) = record.values.items()
    return record.entity, record.time, name, value


def as_json(record):
    return json.dumps({"entity": record.entity, "time": record.time, **record.values})


def as_value(time, value):
    return json.dumps({"time": time, "value": value}).encode()


def as_csv(record):
    return ",".join(map(str, one(record)))


def as_influx(record):
    entity, time, name, value = one(record)
    return f"plant,host={entity} {name}={value} {time}"


def to_http(source, record):
    return source.parse(as_json(record).encode(), "application/json")


def to_remote_write(source, record):
    from vace_ad.live import remote_write_codec

    entity, time, name, value = one(record)
    labels = {"__name__": name, "instance": entity, "job": "it"}
    return source.parse(remote_write_codec.encode([(labels, [(time // 10**6, value)])]))


def to_otlp(source, record):
    entity, time, name, value = one(record)
    attributes = [{"key": "service.name", "value": {"stringValue": entity}}]
    points = [{"timeUnixNano": str(time), "asDouble": value}]
    metrics = [{"name": name, "gauge": {"dataPoints": points}}]
    inside = {"resource": {"attributes": attributes}, "scopeMetrics": [{"metrics": metrics}]}
    return source.parse(json.dumps({"resourceMetrics": [inside]}).encode(), "application/json")


ADAPTERS = {
    "jsonl": lambda folder, _: Files("jsonl", folder, as_json),
    "csv": lambda folder, _: Files("csv", folder, as_csv, "entity,time,channel,value\n"),
    "influx": lambda folder, _: Files("influx", folder, as_influx),
    "http": lambda *_: Pushed(to_http),
    "remote-write": lambda *_: Pushed(to_remote_write),
    "otlp": lambda *_: Pushed(to_otlp),
    "mqtt": lambda *_: Mqtt(),
    "sparkplug": lambda *_: Sparkplug(),
    "opcua": lambda *_: OpcUa(),
    "kafka": lambda _, monkeypatch: Kafka(monkeypatch),
}
NEEDS = {"remote-write": ("cramjam", "prometheus"), "otlp": ("opentelemetry.proto", "otlp"),
         "mqtt": ("paho.mqtt", "live"), "sparkplug": ("paho.mqtt", "live"),
         "opcua": ("asyncua", "opcua"), "kafka": ("confluent_kafka", "live")}  # fmt: skip


@pytest.fixture
def adapter(request, tmp_path, monkeypatch):
    module, extra = NEEDS.get(request.param, ("json", ""))
    pytest.importorskip(module, reason=f"pip install 'vace-ad[{extra}]'")
    found = ADAPTERS[request.param](tmp_path, monkeypatch)
    found.kind = request.param
    return found


def over(*names):
    return pytest.mark.parametrize("adapter", names or ADAPTERS, indirect=True)


def make(adapter, **more):
    found = kinds("source")[adapter.kind].load()
    return found(read_settings(found.SETTINGS, {**adapter.settings, **more}, "source"))


def opened(adapter, source, position=None):
    if not getattr(adapter, "connects", False):  # those would look for a server
        source.open(position)
    return source


def drained(source):
    """Everything that waits, with the last position."""
    records, position = [], None
    while (batch := source.read(0.0 if not records else 0.01)) is not None:
        assert not batch.bad, batch.why
        records += batch.records
        position = batch.position
    return records, position


def rows_of(records):
    """What an aligner for each entity makes of records, and what it counted."""
    aligners, rows, counts = {}, {}, Counter()
    for record in records:
        aligner = aligners.setdefault(record.entity, Aligner(RULE))
        rows.setdefault(record.entity, []).extend(aligner.add(record, counts))
    for name, aligner in aligners.items():
        rows[name] += aligner.finish()
    return {name: [(row.time, row.values) for row in found] for name, found in rows.items()}, counts


def test_every_kind_of_source_keeps_the_contract():
    # A Prometheus is asked for each step once, so nothing comes late or twice: test_prometheus.py.
    assert set(ADAPTERS) | {"prometheus"} == set(kinds("source"))


@over()
def test_the_same_rows_whatever_comes(adapter):
    source = opened(adapter, make(adapter))
    got = []
    for record in READINGS:
        adapter.send(source, record)
        records, position = drained(source)
        got += records
        json.dumps(position)  # kept as JSON
        source.acknowledge(json.loads(json.dumps(position)))
    assert got == READINGS
    rows, counts = rows_of(got)
    assert (rows, counts) == rows_of(READINGS)
    assert counts["late"] >= 1
    assert counts["twice"] >= 1
    assert counts["reordered"] >= 1
    assert len(rows["plant/p2"]) == 2
    source.close()


@over()
def test_a_restart_loses_nothing_and_doubles_no_row(adapter):
    source, got, kept = opened(adapter, make(adapter)), [], None
    middle = len(READINGS) // 2
    for i, record in enumerate(READINGS[: middle + 3]):
        adapter.send(source, record)
        records, position = drained(source)
        got += records
        if i < middle:
            kept = json.loads(json.dumps(position))
            source.acknowledge(kept)
    if isinstance(adapter, Files):
        source.close()
    source = opened(adapter, make(adapter), kept)  # killed: three were read and never kept
    adapter.again(source, READINGS[middle : middle + 3])
    got += drained(source)[0]
    for record in READINGS[middle + 3 :]:
        adapter.send(source, record)
        got += drained(source)[0]
    assert got[-1] == READINGS[-1]
    assert rows_of(got)[0] == rows_of(READINGS)[0]
    if isinstance(adapter, Files):
        source.close()


@over("http", "remote-write", "otlp")
def test_a_sender_that_is_too_fast_is_refused_and_sends_again(adapter):
    source, got, refused = make(adapter, pending=2), [], 0
    for record in READINGS[:6]:
        try:
            adapter.send(source, record)
        except FullError:
            refused += 1
            got += drained(source)[0]
            adapter.send(source, record)
    got += drained(source)[0]
    assert refused == 2
    assert rows_of(got)[0] == rows_of(READINGS[:6])[0]


@over("jsonl", "csv", "influx", "kafka")
def test_what_waits_where_it_lies_is_read_in_batches(adapter, monkeypatch):
    monkeypatch.setattr("vace_ad.live.sources.files._PIECE", 128)  # bytes
    monkeypatch.setattr("vace_ad.live.sources.kafka._MESSAGES", 2)
    source = opened(adapter, make(adapter))
    for record in READINGS[:6]:
        adapter.send(source, record)
    first = source.read(0.0).records
    assert 0 < len(first) < 6
    assert first + drained(source)[0] == READINGS[:6]
    source.close()


def test_a_broker_keeps_what_it_can_and_the_rest_is_counted(monkeypatch):
    pytest.importorskip("paho.mqtt", reason="pip install 'vace-ad[live]'")
    monkeypatch.setattr("vace_ad.live.sources.mqtt._IN_FLIGHT", 4)
    adapter = Mqtt()
    adapter.kind = "mqtt"
    source = make(adapter)
    for record in READINGS[:6]:
        adapter.send(source, record, qos=0)
    adapter.send(source, READINGS[6])  # of QoS 1: the broker itself stops at so many
    batch = source.read(0.0)
    assert (batch.records, batch.bad) == (READINGS[:4], 2)
    assert "2 of QoS 0 were lost" in batch.why
    batch = source.read(0.0)
    assert (batch.records, batch.bad) == ([READINGS[6]], 0)


def test_readings_for_which_there_is_no_room_are_counted(monkeypatch):
    pytest.importorskip("asyncua", reason="pip install 'vace-ad[opcua]'")
    monkeypatch.setattr("vace_ad.live.sources.opcua._MOST", 4)
    adapter = OpcUa()
    adapter.kind = "opcua"
    source = make(adapter)
    for record in READINGS[:6]:
        adapter.send(source, record)
    batch = source.read(0.0)
    assert (batch.records, batch.bad) == (READINGS[:4], 2)
    assert "2 were lost" in batch.why
