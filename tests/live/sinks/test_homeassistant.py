import json
import re
import time

import numpy as np
import pytest

from live.running import until
from live.servers import mosquitto
from vace_ad.live.settings import read_settings
from vace_ad.live.sinks import Scored
from vace_ad.live.sinks.homeassistant import HomeAssistantSink, discovery, key_of

paho = pytest.importorskip("paho.mqtt.client", reason="pip install 'vace-ad[live]'")

# Keys that Home Assistant documents for discovery by MQTT, and which of them it asks for.
SHARED = {"availability_topic", "device", "icon", "json_attributes_topic", "name", "origin",
          "state_topic", "unique_id", "value_template", "device_class"}  # fmt: skip
ALLOWED = {
    "binary_sensor": SHARED | {"payload_on", "payload_off", "off_delay", "expire_after"},
    "sensor": SHARED | {"state_class", "suggested_display_precision", "unit_of_measurement"},
}
DEVICE = {"identifiers", "name", "manufacturer", "model", "sw_version", "configuration_url"}
TOPIC = re.compile(r"homeassistant/(binary_sensor|sensor)/[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+/config")

MESSAGE = {
    "id": "a.1", "what": "open", "alarm": "a", "kind": "anomaly", "entity": "pump 1", "channel": "",
    "onset": "2026-01-05T12:00:00.000Z", "time": "2026-01-05T12:00:10.500Z", "resolved": None,
    "severity": 71.5, "score": 9.25, "channels": [{"name": "flow", "share": 1.0}],
    "summary": "pump 1: anomaly in flow 100%",
}  # fmt: skip


def make(url="mqtt://127.0.0.1:1", **more):
    given = {"url": url, "every": "1ms", **more}
    return HomeAssistantSink(read_settings(HomeAssistantSink.SETTINGS, given, "sink"))


def test_configurations_are_as_documented():
    settings = read_settings(HomeAssistantSink.SETTINGS, {"url": "mqtt://h:1"}, "sink")
    found = discovery("pump 1/ä", settings)
    assert len(found) == 3
    for topic, config in found.items():
        component = TOPIC.fullmatch(topic)[1]
        assert set(config) <= ALLOWED[component]
        assert {"state_topic", "unique_id", "device", "name"} <= set(config)
        assert set(config["device"]) <= DEVICE
        assert config["device"]["identifiers"]
        assert config["origin"]["name"]
        assert not re.search(r"[#+]", config["state_topic"])
        key = re.fullmatch(r"\{\{ value_json\.(\w+) \}\}", config["value_template"])[1]
        assert key in make()._state("pump 1/ä")
    assert len({config["unique_id"] for config in found.values()}) == 3
    (alarm,) = (one for topic, one in found.items() if "binary_sensor" in topic)
    assert alarm["device_class"] == "problem"


def test_keys_differ_and_fit_into_topics():
    names = ["pump", "pump 1", "pump_1", "pump/1", "#", "+", "ä" * 90]
    keys = [key_of(name) for name in names]
    assert len(set(keys)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", key) for key in keys)


def test_a_device_appears_in_a_real_broker_and_goes_with_us(tmp_path):
    with mosquitto(tmp_path) as (url, _):
        heard = {}
        listener = paho.Client(paho.CallbackAPIVersion.VERSION2)
        listener.on_message = lambda c, u, m: heard.__setitem__(m.topic, (m.payload, m.retain))
        sink = make(url)
        rows = np.zeros((2, 1))
        sink.rows(Scored("pump 1", ("flow",), [1, 2], rows, [float("nan"), 2.5], [False, False]))
        assert sink.flush()
        listener.connect("127.0.0.1", int(url.rsplit(":", 1)[1]))  # afterwards: all is retained
        listener.subscribe("#", qos=1)
        listener.loop_start()
        until(lambda: len(heard) >= 5)
        assert heard["vace/status"][0] == b"online"
        configs = {topic: one for topic, one in heard.items() if topic.endswith("/config")}
        assert len(configs) == 3
        assert all(TOPIC.fullmatch(topic) and retained for topic, (_, retained) in configs.items())
        place = json.loads(next(iter(configs.values()))[0])["state_topic"]
        state = json.loads(heard[place][0])
        assert (state["alarm"], state["score"], state["suspects"]) == ("OFF", 2.5, "none")
        sink.send([MESSAGE])
        until(lambda: json.loads(heard[place][0])["alarm"] == "ON")
        state = json.loads(heard[place][0])
        assert (state["suspects"], state["severity"], state["score"]) == ("flow", 71.5, 2.5)
        sink.send([{**MESSAGE, "what": "resolve"}])
        until(lambda: json.loads(heard[place][0])["alarm"] == "OFF")
        sink.close()
        until(lambda: heard["vace/status"][0] == b"offline")
        listener.loop_stop()
        listener.disconnect()


def test_scores_wait_for_their_time():
    sink = make(every="1h")
    sink._sent = time.monotonic()
    sink.rows(Scored("p", ("flow",), [1], np.zeros((1, 1)), [2.5], [False]))
    assert sink.flush() is False
