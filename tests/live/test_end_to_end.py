"""From a fault at a real server, through the real detector, to an alert and to its end."""

import json
import threading
import time

import numpy as np
import pytest

from live import real
from live.feeds import CHANNELS, Receiver, feed, settings
from live.running import running, until
from live.servers import alertmanager, mosquitto, node_exporter, prometheus
from vace_ad.live.config import make_config


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def test_a_plant_over_mqtt(tmp_path, receiver):
    paho = pytest.importorskip("paho.mqtt.client", reason="pip install 'vace-ad[live]'")
    real.save_model(tmp_path / "model.json")
    with mosquitto(tmp_path) as (url, _):
        data = settings(tmp_path, align={"step": "10s", "lateness": "30s", "fill": "hold"})
        data["source"] = {"kind": "mqtt", "url": url, "topics": "plant/+/+"}
        data["sink"] = [
            {"kind": "webhook", "url": receiver.url},
            {"kind": "mqtt", "url": url, "client_id": "alarms"},
        ]
        data["server"] = {"address": "127.0.0.1:0"}
        heard = []
        listener = paho.Client(paho.CallbackAPIVersion.VERSION2)
        listener.on_message = lambda client, user, message: heard.append(
            json.loads(message.payload)
        )
        port = int(url.rsplit(":", 1)[1])
        listener.connect("127.0.0.1", port)
        listener.subscribe("vace/alarms/#", qos=1)
        listener.loop_start()
        with running(make_config(data), real.core) as (watch, _):
            until(lambda: watch.source.problem is None)
            time.sleep(0.3)
            sender = paho.Client(paho.CallbackAPIVersion.VERSION2)
            sender.connect("127.0.0.1", port)
            sender.loop_start()
            for line in feed(n_rows=240, faults=((100, 106, 1),), entities=("pump",)):
                for channel in CHANNELS:
                    body = json.dumps({"time": line["time"], "value": line[channel]})
                    sender.publish(f"plant/pump/{channel}", body, qos=1)
            until(lambda: any("resolve" in e["type"] for e in receiver.got), 30)
            until(lambda: len(heard) >= 2)
            until(lambda: watch.status.counts["readings"] >= 720)  # the last ones may be under way
            sender.loop_stop()
            counts = watch.status.counts
            assert (counts["readings"], counts["late"], counts["bad"]) == (720, 0, 0)
        listener.loop_stop()
        listener.disconnect()
    first, last = receiver.got[0]["data"], receiver.got[-1]["data"]
    assert (first["what"], first["entity"], first["channels"][0]["name"]) == (
        "open",
        "pump",
        "level",
    )
    assert (last["what"], last["alarm"]) == ("resolve", first["alarm"])
    assert {message["alarm"] for message in heard} == {first["alarm"]}


def test_a_service_over_prometheus_and_alertmanager(tmp_path, receiver):
    with (
        node_exporter(tmp_path) as (port, text),
        prometheus(tmp_path, port, interval="200ms") as url,
        alertmanager(tmp_path, receiver.url) as manager,
    ):
        level, stop = [0.0], threading.Event()

        def write():
            rng = np.random.default_rng(0)
            while not stop.wait(0.06):
                flow, other, power = rng.normal(size=3).tolist()
                partial = text.with_suffix(".tmp")
                partial.write_text(f"flow {flow}\nlevel {level[0] + other}\npower {power + 1}\n")
                partial.rename(text)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        real.save_model(tmp_path / "model.json", step=2 * 10**8, middle=(0.0, 0.0, 1.0))
        data = settings(tmp_path, align={"step": "200ms"}, alarms={"resolve_after": "1s"})
        data["source"] = {
            "kind": "prometheus", "url": url, "step": "200ms",
            "queries": {name: name for name in CHANNELS},
        }  # fmt: skip
        data["sink"] = [{"kind": "alertmanager", "url": manager, "repeat": "1s"}]
        data["server"] = {"address": "127.0.0.1:0"}
        with running(make_config(data), real.core) as (watch, _):
            until(lambda: watch.status.counts["rows"] >= 70, 60)  # alarms have warmed up
            level[0] = 30.0  # the fault
            until(lambda: receiver.got, 30)
            level[0] = 0.0
            until(lambda: receiver.got[-1]["status"] == "resolved", 60)
        stop.set()
        writer.join()
    fired = receiver.got[0]["alerts"][0]
    assert fired["status"] == "firing"
    assert fired["labels"]["alertname"] == "VaceAnomaly"
    assert fired["labels"]["entity"] == f"127.0.0.1:{port}"
    assert fired["annotations"]["channels"].startswith("level")
    last = receiver.got[-1]["alerts"][0]
    assert last["labels"] == fired["labels"]
