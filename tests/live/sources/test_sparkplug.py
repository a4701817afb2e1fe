"""Sparkplug B over a real broker; payloads are written here by an encoder of the test's own."""

import struct
import time

import numpy as np
import pytest

from live.fakes import FakeCore
from live.feeds import CHANNELS, Receiver, settings
from live.servers import mosquitto
from vace_ad.live.config import make_config
from vace_ad.live.records import BadRecordError
from vace_ad.live.runner import Watch
from vace_ad.live.settings import read_settings

paho = pytest.importorskip("paho.mqtt.client", reason="pip install 'vace-ad[live]'")

from vace_ad.live.sources.sparkplug import (  # noqa: E402
    Metric,
    SparkplugSource,
    number_of,
    read_payload,
    rebirth,
)  # fmt: skip

T0 = 1_767_614_400_000  # milliseconds
INT8, INT32, UINT32, INT64, FLOAT, DOUBLE, BOOLEAN, STRING = 1, 3, 7, 4, 9, 10, 11, 12


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n % 128 + 128]), n // 128
    return out + bytes([n])


def tag(number, wire):
    return varint(number * 8 + wire)


def sized(number, data):
    return tag(number, 2) + varint(len(data)) + data


def metric(name=None, alias=None, kind=None, value=None, stamp=None):
    """A metric; None as a value is null."""
    out = b"" if name is None else sized(1, name.encode())
    out += b"" if alias is None else tag(2, 0) + varint(alias)
    out += b"" if stamp is None else tag(3, 0) + varint(stamp)
    out += b"" if kind is None else tag(4, 0) + varint(kind)
    if value is None:
        return out + tag(7, 0) + varint(1)
    if isinstance(value, str):
        return out + sized(15, value.encode())
    if kind == BOOLEAN:
        return out + tag(14, 0) + varint(value)
    if isinstance(value, float):
        narrow = kind == FLOAT
        body = struct.pack("<f" if narrow else "<d", value)
        return out + tag(12 if narrow else 13, 5 if narrow else 1) + body
    long = kind == INT64
    return out + tag(11 if long else 10, 0) + varint(value % 2 ** (64 if long else 32))


def payload(*metrics, stamp=T0, seq=0):
    start = b"" if stamp is None else tag(1, 0) + varint(stamp)
    return start + b"".join(sized(2, one) for one in metrics) + tag(3, 0) + varint(seq)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(INT8, -5), (INT32, -(2**31)), (UINT32, 2**32 - 1), (INT64, -(2**63)), (BOOLEAN, True),
     (FLOAT, 1.5), (DOUBLE, -0.1)],
)  # fmt: skip
def test_numbers_of_every_type(kind, value):
    stamp, (found,) = read_payload(payload(metric("a", 7, kind, value, T0 + 1)))
    assert stamp == T0
    assert (found.name, found.alias, found.time, found.kind) == ("a", 7, T0 + 1, kind)
    assert number_of(found, kind) == value


def test_int8_in_eight_bits_as_some_nodes_write_it():
    assert number_of(Metric(value=0xFB), INT8) == -5


def test_null_is_no_number():
    _, (found,) = read_payload(payload(metric("a", None, DOUBLE, None)))
    assert number_of(found, DOUBLE) != number_of(found, DOUBLE)


@pytest.mark.parametrize("cut", range(1, 24))
def test_a_payload_that_was_cut_is_refused_or_shorter(cut):
    whole = payload(metric("flow", 3, DOUBLE, 2.5))
    try:
        _, found = read_payload(whole[:-cut])
    except BadRecordError:
        return
    assert len(found) <= 1


def test_what_asks_for_a_birth_can_be_read():
    stamp, (found,) = read_payload(rebirth(T0))
    assert (stamp, found.name, found.value) == (T0, "Node Control/Rebirth", 1)


def bare():
    """A source that is not connected."""
    return SparkplugSource(
        read_settings(SparkplugSource.SETTINGS, {"url": "mqtt://127.0.0.1:1"}, "source")
    )


def birth(*more, number=0):
    return payload(
        metric("bdSeq", None, INT64, number), metric("Node Control/Rebirth", None, BOOLEAN, False),
        *more,
    )  # fmt: skip


def test_a_death_of_an_earlier_birth_is_not_heeded():
    source = bare()
    source._records("spBv1.0/g/NBIRTH/n", birth(number=4), 0)
    source._records("spBv1.0/g/DBIRTH/n/d", payload(metric("flow", 1, DOUBLE, 1.0)), 0)
    source._records("spBv1.0/g/NDEATH/n", payload(metric("bdSeq", None, INT64, 3)), 0)
    assert source.silent == []
    source._records("spBv1.0/g/NDEATH/n", payload(metric("bdSeq", None, INT64, 4)), 0)
    assert source.silent == ["g/n", "g/n/d"]
    with pytest.raises(BadRecordError, match="before its birth"):
        source._records("spBv1.0/g/DDATA/n/d", payload(metric(None, 1, None, 1.0)), 0)


def test_texts_and_the_protocols_own_metrics_are_left_out_and_texts_are_said():
    source = bare()
    found = source._records(
        "spBv1.0/g/NBIRTH/n", birth(metric("model", 1, STRING, "X"), metric("t", 2, FLOAT, 0.5)), 0
    )
    assert [(one.entity, one.time, dict(one.values)) for one in found] == [
        ("g/n", T0 * 10**6, {"t": 0.5})
    ]
    assert source.notes == ["g/n: no numbers, so not watched: model"]
    source._records("spBv1.0/g/NDATA/n", payload(metric(None, 1, None, "Y")), 0)


def test_damaged_payloads_are_refused_and_do_no_more():
    rng = np.random.default_rng(0)
    source, good = bare(), birth(metric("t", 2, FLOAT, 0.5), metric("n", 3, INT64, -4))
    refused = 0
    for _ in range(3000):
        data = bytearray(good)
        for place in rng.integers(0, len(data), rng.integers(1, 4)).tolist():
            data[place] = int(rng.integers(0, 256))
        kind = ("NBIRTH", "NDATA", "NDEATH")[int(rng.integers(3))]
        try:
            for record in source._records(f"spBv1.0/g/{kind}/n", bytes(data), 0):
                assert 0 <= record.time < 2**63
                assert all(isinstance(value, float) for value in record.values.values())
        except BadRecordError:
            refused += 1
    assert refused > 300


def connected(url, **more):
    source = SparkplugSource(
        read_settings(SparkplugSource.SETTINGS, {"url": url, **more}, "source")
    )
    source.open(None)
    until(lambda: source.problem is None)
    time.sleep(0.2)  # until the broker has confirmed the subscription
    return source


def sender(url, heard=None, topic=None):
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    if heard is not None:
        client.on_message = lambda _c, _u, message: heard.append((message.topic, message.payload))
    client.connect("127.0.0.1", int(url.rsplit(":", 1)[1]))
    client.loop_start()
    if topic is not None:
        client.subscribe(topic)
        time.sleep(0.2)
    return client


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.01)


def read(source, n, seconds=5):
    """So many records, and how many messages were bad."""
    records, bad, end = [], 0, time.monotonic() + seconds
    while len(records) < n and time.monotonic() < end:
        batch = source.read(0.1)
        if batch is not None:
            records, bad = records + batch.records, bad + batch.bad
    return records, bad


def test_births_data_by_alias_and_a_birth_that_is_asked_for(tmp_path):
    heard = []
    with mosquitto(tmp_path) as (url, _):
        source, node = connected(url), sender(url, heard, "spBv1.0/plant/NCMD/line1")
        base = "spBv1.0/plant/{}/line1/pump"
        data = payload(metric(None, 1, None, 2.5, T0 + 10_000), metric(None, 2, None, -3))
        node.publish(base.format("DDATA"), data)
        until(lambda: read(source, 1, 0.2) and heard)  # we came late: the birth is asked for
        (_, asked) = heard[0]
        assert read_payload(asked)[1][0].name == "Node Control/Rebirth"
        node.publish("spBv1.0/plant/NBIRTH/line1", birth())
        node.publish(
            base.format("DBIRTH"),
            payload(metric("flow", 1, DOUBLE, 2.0), metric("valve/open", 2, INT32, 0)),
        )
        node.publish(base.format("DDATA"), data)
        records, _ = read(source, 3)
        assert {one.entity for one in records} == {"plant/line1/pump"}
        assert [(one.time // 10**6, dict(one.values)) for one in records] == [
            (T0, {"flow": 2.0, "valve/open": 0.0}),
            (T0 + 10_000, {"flow": 2.5}),
            (T0, {"valve/open": -3.0}),
        ]
        source.close()
        node.loop_stop()


def test_a_death_is_silence_and_a_birth_ends_it(tmp_path):
    receiver = Receiver()
    with mosquitto(tmp_path) as (url, _):
        data = settings(
            tmp_path,
            align={"step": "1s", "future": "1000d"},
            alarms={"silence_after": "10min"},
            sink=[{"kind": "webhook", "url": receiver.url}],
        )
        data["source"] = {"kind": "sparkplug", "url": url}
        watch = Watch(make_config(data), FakeCore())
        watch.start()
        until(lambda: watch.source.problem is None)
        time.sleep(0.2)
        node, now = sender(url), time.time_ns() // 10**6
        base = "spBv1.0/plant/{}/line1/pump"
        metrics = [metric(name, i, DOUBLE, 0.1) for i, name in enumerate(CHANNELS)]

        def told():
            watch.step()
            return [(e["data"]["kind"], e["data"]["what"]) for e in receiver.got]

        node.publish(base.format("DBIRTH"), payload(*metrics, stamp=now - 8000))
        node.publish(base.format("DDATA"), payload(*metrics, stamp=now - 6000))
        until(lambda: told() is not None and watch.status.counts["rows"] >= 1)
        node.publish(base.format("DDEATH"), payload())
        until(lambda: told() == [("no data", "open")])
        assert receiver.got[0]["data"]["entity"] == "plant/line1/pump"
        node.publish(base.format("DBIRTH"), payload(*metrics, stamp=now - 2000))
        node.publish(base.format("DDATA"), payload(*metrics, stamp=now))
        until(lambda: told() == [("no data", "open"), ("no data", "resolve")])
        watch.close()
        node.loop_stop()
    receiver.close()
