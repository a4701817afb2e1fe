"""The contract of a source, over every kind and over a plug-in."""

from __future__ import annotations

import json
import time

import pytest

from live.servers import mosquitto
from vace_ad.errors import ConfigError
from vace_ad.live.config import make_config
from vace_ad.live.plugins import Kind, kinds
from vace_ad.live.records import Record
from vace_ad.live.settings import Settings, key, read_settings
from vace_ad.live.sources import Batch, Source

T0 = 1_767_614_400
N = 12


class CountingSettings(Settings):
    most: int = key(N, "how far to count", low=1, high=1000)


class CountingSource(Source):
    """A plug-in as somebody else would write it: counts up, from where it was."""

    SETTINGS = CountingSettings
    live = False

    def open(self, position):
        self._next = 0 if position is None else position

    def read(self, timeout):
        if self._next >= self.settings.most:
            return Batch([], self._next, end=True)
        record = Record("counter", (T0 + self._next) * 10**9, {"flow": float(self._next)})
        self._next += 1
        return Batch([record], self._next)


@pytest.fixture
def plugged(monkeypatch):
    real = kinds("source")
    kind = Kind("counter", "live.test_sources:CountingSource")
    monkeypatch.setattr(
        "vace_ad.live.config.kinds",
        lambda group: {**real, "counter": kind} if group == "source" else kinds(group),
    )


def records():
    return [{"time": T0 + i, "entity": "counter", "flow": float(i)} for i in range(N)]


def csv_source(folder):
    path = folder / "a.csv"
    rows = "".join(f"{r['time']},{r['entity']},{r['flow']}\n" for r in records())
    path.write_text("time,entity,flow\n" + rows)
    return "csv", {"path": str(path)}, lambda made: None


def jsonl_source(folder):
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in records()))
    return "jsonl", {"path": str(path)}, lambda made: None


def http_source(folder):
    return (
        "http",
        {},
        lambda made: made.push(made.parse(json.dumps(records()).encode(), "application/json")),
    )


def mqtt_source(folder):
    paho = pytest.importorskip("paho.mqtt.client")

    def send(made):
        end = time.monotonic() + 5
        while made.problem and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.2)
        client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", int(folder.url.rsplit(":", 1)[1]))
        client.loop_start()
        for r in records():
            body = json.dumps({"time": r["time"], "value": r["flow"]})
            client.publish("plant/counter/flow", body, qos=1).wait_for_publish(5)
        client.loop_stop()

    return "mqtt", {"url": folder.url, "topics": "plant/+/+"}, send


def counter_source(folder):
    return "counter", {}, lambda made: None


MAKERS = [csv_source, jsonl_source, http_source, mqtt_source, counter_source]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__.removesuffix("_source"))
def case(request, tmp_path):
    if request.param is mqtt_source:
        with mosquitto(tmp_path) as (url, _):
            yield request.param(type("Broker", (), {"url": url}))
    else:
        yield request.param(tmp_path)


def test_the_contract_of_a_source(case):
    kind, given, send = case
    found = CountingSource if kind == "counter" else kinds("source")[kind].load()
    made = found(read_settings(found.SETTINGS, given, "source"))
    made.open(None)
    send(made)
    assert made.live in (True, False)
    assert made.eager in (True, False)
    values, positions, end = [], [], time.monotonic() + 10
    while len(values) < N and time.monotonic() < end:
        started = time.monotonic()
        batch = made.read(0.2)
        assert time.monotonic() - started < 3, "a read must come back soon"
        if batch is None:
            continue
        assert isinstance(batch, Batch)
        positions.append(json.loads(json.dumps(batch.position)))  # plain values
        values += [record.values["flow"] for record in batch.records]
        assert all(record.entity == "counter" for record in batch.records)
    assert values == [float(i) for i in range(N)]
    assert made.problem is None
    for position in positions:
        made.acknowledge(position)
    made.acknowledge(positions[-1])  # twice does no harm
    made.close()


def test_a_plug_in_has_its_own_keys_and_their_checks(plugged):
    tables = {"model": {"learn": "1h"}, "state": {"path": "x"}}
    config = make_config({"source": {"kind": "counter", "most": 7}, **tables})
    assert config.source.settings.most == 7
    with pytest.raises(ConfigError, match=r"source\.most = 0: must be a whole number from 1"):
        make_config({"source": {"kind": "counter", "most": 0}, **tables})


def test_a_plug_in_that_cannot_be_loaded_is_said():
    with pytest.raises(ConfigError, match="'opcua' cannot be loaded"):
        Kind("opcua", "no_such_module:Source").load()
    with pytest.raises(ConfigError, match="no SETTINGS"):
        Kind("opcua", "json:JSONDecoder").load()


def test_a_pipe_in_place_of_a_file_is_said_and_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    found = kinds("source")["csv"].load()
    made = found(read_settings(found.SETTINGS, {"path": str(tmp_path / "pipe")}, "source"))
    made.open(None)
    assert made.read(0.01) is None
    assert "is not a file" in made.problem
    made.close()
