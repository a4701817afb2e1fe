"""One contract for every source: whatever comes, in whatever way, the same rows are made of it.

Each source gets the same readings in its own form: in order, late, twice, out of order, with a
channel that is new and one that ends, of an entity that comes and goes, and across a restart. The
rows must be those of the readings themselves.
"""

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from live.feeds import START, STEP
from vace_ad.live.align import Aligner
from vace_ad.live.config import Align
from vace_ad.live.plugins import kinds
from vace_ad.live.records import Record
from vace_ad.live.settings import read_settings
from vace_ad.live.sources.push import FullError

RULE = Align(step=STEP, lateness=2 * STEP)


def reading(step, channel, value, entity="p1"):
    return Record(entity, START + step * STEP, {channel: float(value)})


READINGS = [
    *(reading(i, name, i + j) for i in range(6) for j, name in enumerate(("flow", "level"))),
    reading(7, "flow", 7), reading(6, "flow", 6),  # out of order
    reading(7, "flow", 7),  # twice
    reading(4, "level", 99),  # late, and still put in place or dropped by the same rule
    reading(0, "flow", 99),  # far too late
    *(reading(i, "power", 10 * i) for i in range(8, 12)),  # a channel that is new, others end
    *(reading(i, "flow", i, "p2") for i in range(8, 10)),  # an entity that comes and goes
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

    def __init__(self):
        self.settings = {"url": "mqtt://127.0.0.1:1", "topics": "plant/+/+"}

    def send(self, source, record):
        ((name, value),) = record.values.items()
        payload = json.dumps({"time": record.time, "value": value}).encode()
        topic = f"plant/{record.entity}/{name}"
        source._received(None, None, SimpleNamespace(topic=topic, payload=payload, mid=1, qos=1))


class OpcUa(Pushed):
    """Values as the client hands them over; a subscription has nothing to send again."""

    def __init__(self):
        self.settings = {"url": "opc.tcp://127.0.0.1:1", "folder": "i=85"}

    def send(self, source, record):
        ((name, value),) = record.values.items()
        source._put(record.entity, name, record.time, value)


def one(record):
    ((name, value),) = record.values.items()
    return record.entity, record.time, name, value


def as_json(record):
    return json.dumps({"entity": record.entity, "time": record.time, **record.values})


def as_csv(record):
    return ",".join(map(str, one(record)))


def as_influx(record):
    entity, time, name, value = one(record)
    return f"plant,host={entity} {name}={value} {time}"


def to_http(source, record):
    return source.parse(as_json(record).encode(), "application/json")


def to_remote_write(source, record):
    from vace_ad.live import prompb

    entity, time, name, value = one(record)
    labels = {"__name__": name, "instance": entity, "job": "it"}
    return source.parse(prompb.encode([(labels, [(time // 10**6, value)])]))


def to_otlp(source, record):
    entity, time, name, value = one(record)
    attributes = [{"key": "service.name", "value": {"stringValue": entity}}]
    points = [{"timeUnixNano": str(time), "asDouble": value}]
    metrics = [{"name": name, "gauge": {"dataPoints": points}}]
    inside = {"resource": {"attributes": attributes}, "scopeMetrics": [{"metrics": metrics}]}
    return source.parse(json.dumps({"resourceMetrics": [inside]}).encode(), "application/json")


ADAPTERS = {
    "jsonl": lambda folder: Files("jsonl", folder, as_json),
    "csv": lambda folder: Files("csv", folder, as_csv, "entity,time,channel,value\n"),
    "influx": lambda folder: Files("influx", folder, as_influx),
    "http": lambda folder: Pushed(to_http),
    "remote-write": lambda folder: Pushed(to_remote_write),
    "otlp": lambda folder: Pushed(to_otlp),
    "mqtt": lambda folder: Mqtt(),
    "opcua": lambda folder: OpcUa(),
}
NEEDS = {"remote-write": ("cramjam", "prometheus"), "otlp": ("opentelemetry.proto", "otlp"),
         "mqtt": ("paho.mqtt", "live"), "opcua": ("asyncua", "opcua")}  # fmt: skip


@pytest.fixture(params=ADAPTERS)
def adapter(request, tmp_path):
    module, extra = NEEDS.get(request.param, ("json", ""))
    pytest.importorskip(module, reason=f"pip install 'vace-ad[{extra}]'")
    found = ADAPTERS[request.param](tmp_path)
    found.kind = request.param
    return found


def make(adapter, **more):
    found = kinds("source")[adapter.kind].load()
    return found(read_settings(found.SETTINGS, {**adapter.settings, **more}, "source"))


def opened(adapter, source, position=None):
    if adapter.kind not in ("mqtt", "opcua"):  # those would look for a server
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
    assert len(rows["p2"]) == 2
    if adapter.kind not in ("mqtt", "opcua"):
        source.close()


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


@pytest.mark.parametrize("kind", ["http", "remote-write", "otlp"])
def test_back_pressure_refuses_and_takes_what_comes_again(kind, tmp_path):
    module, extra = NEEDS.get(kind, ("json", ""))
    pytest.importorskip(module, reason=f"pip install 'vace-ad[{extra}]'")
    adapter = ADAPTERS[kind](tmp_path)
    adapter.kind = kind
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
