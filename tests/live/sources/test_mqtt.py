import json
import time

import pytest

from live.servers import mosquitto
from vace_ad.live.records import BadRecordError
from vace_ad.live.settings import read_settings

paho = pytest.importorskip("paho.mqtt.client", reason="pip install 'vace-ad[live]'")

from vace_ad.live.sources.mqtt import MqttSource, name_of  # noqa: E402


def source(url, **more):
    made = MqttSource(
        read_settings(MqttSource.SETTINGS, {"url": url, "topics": "plant/+/+", **more}, "s")
    )
    made.open(None)
    end = time.monotonic() + 5
    while made.problem is not None and time.monotonic() < end:
        time.sleep(0.01)
    assert made.problem is None
    time.sleep(0.1)  # until the broker has confirmed the subscription
    return made


def sender(url):
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", int(url.rsplit(":", 1)[1]))
    client.loop_start()
    return client


def publish(client, topic, payload):
    client.publish(topic, payload, qos=1).wait_for_publish(5)


def read(made, n, seconds=5):
    records, batch, end = [], None, time.monotonic() + seconds
    while len(records) < n and time.monotonic() < end:
        found = made.read(0.1)
        if found is not None:
            batch = found
            records += batch.records
    return records, batch


def test_numbers_and_objects(tmp_path):
    with mosquitto(tmp_path) as (url, _):
        made, client = source(url), sender(url)
        publish(client, "plant/p1/flow", "1.5")
        publish(client, "plant/p1/level", '{"time": 1767614400, "value": 2}')
        publish(client, "plant/p2/all", '{"time": 1767614400, "flow": 3, "entity": "p9"}')
        records, batch = read(made, 3)
        assert [record.entity for record in records] == ["p1", "p1", "p2"]
        assert [dict(record.values) for record in records[:2]] == [{"flow": 1.5}, {"level": 2.0}]
        assert records[1].time == 1_767_614_400 * 10**9
        made.acknowledge(batch.position)
        made.close()
        client.loop_stop()


def test_what_is_not_acknowledged_comes_again(tmp_path):
    with mosquitto(tmp_path) as (url, _):
        made, client = source(url), sender(url)
        for i in range(5):
            publish(client, "plant/p1/flow", json.dumps({"time": 1767614400 + i, "value": i}))
        first, batch = read(made, 3)
        made.acknowledge(3)
        time.sleep(0.3)
        made.close()
        publish(client, "plant/p1/flow", json.dumps({"time": 1767614405, "value": 5}))  # while away
        again = source(url)
        rest, _ = read(again, 3, 3)
        assert [record.values["flow"] for record in rest] == [3, 4, 5]
        assert batch is not None
        assert len(first) >= 3
        again.close()
        client.loop_stop()


def test_many_messages_at_once(tmp_path):
    with mosquitto(tmp_path) as (url, _):
        made, client = source(url), sender(url)
        told = [client.publish("plant/p1/flow", str(i), qos=1) for i in range(800)]
        told[-1].wait_for_publish(10)
        records, batch = read(made, 800, 10)
        assert sorted(record.values["flow"] for record in records) == list(range(800))
        made.acknowledge(batch.position)
        made.close()
        client.loop_stop()


def test_a_broker_that_goes_and_comes_back(tmp_path):
    with mosquitto(tmp_path) as (url, process):
        made = source(url)
        process.terminate()
        process.wait(10)
        end = time.monotonic() + 5
        while made.problem is None and time.monotonic() < end:
            time.sleep(0.01)
        assert "disconnected" in made.problem
    with mosquitto(tmp_path, int(url.rsplit(":", 1)[1])):
        end = time.monotonic() + 10
        while made.problem is not None and time.monotonic() < end:
            time.sleep(0.05)
        assert made.problem is None
        time.sleep(0.2)
        client = sender(url)
        publish(client, "plant/p1/flow", "7")
        records, _ = read(made, 1)
        assert records[0].values == {"flow": 7.0}
        made.close()
        client.loop_stop()


def test_names_out_of_topics():
    assert name_of("plant/a/b", "{1}-{2}") == "a-b"
    with pytest.raises(BadRecordError, match="has 2 levels"):
        name_of("plant/a", "{2}")
