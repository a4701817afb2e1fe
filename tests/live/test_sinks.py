"""The contract of a sink, over every kind; and what each makes of a message."""

from __future__ import annotations

import json

import numpy as np
import pytest

from live.feeds import Receiver
from live.servers import mosquitto
from vace_ad.alarms.events import Event, Reading
from vace_ad.live import remote_write_codec
from vace_ad.live.alarms import Alarm, Message, body
from vace_ad.live.plugins import kinds
from vace_ad.live.settings import read_settings
from vace_ad.live.sinks import RowSink, Scored, SinkError, SinkRefusedError

ONSET = 1_767_614_400 * 10**9


def message(what="open", revision=1, **more):
    event = Event(0, 0, 0, severity=70.0, score=12.5, signal="level", partner="level",
                  shares=(("flow", 0.8), ("level", 0.2)),
                  readings=(Reading("flow", 49.6, 31.0, 35.0),))  # fmt: skip
    alarm = Alarm("a1", "pump/../#", "anomaly", "", ONSET, event=event, revision=revision, **more)
    return body(Message(f"a1.{revision}", what, alarm, ONSET + 10**9), "http://127.0.0.1:8490")


def make(kind, **given):
    found = kinds("sink")[kind].load()
    settings = read_settings(found.SETTINGS, given, "sink")
    return found(settings)


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


NEEDS = {"mqtt": "paho.mqtt.client", "homeassistant": "paho.mqtt.client",
         "remote-write": "cramjam", "otlp": "opentelemetry.proto"}  # fmt: skip


@pytest.fixture(params=sorted(kinds("sink")))
def sink(request, tmp_path, receiver):
    kind = request.param
    pytest.importorskip(NEEDS.get(kind, "json"), reason="pip install 'vace-ad[live]' and others")
    if "url" not in kinds("sink")[kind].load().SETTINGS.model_fields:
        yield make(kind)
    elif kind in ("mqtt", "homeassistant"):
        with mosquitto(tmp_path) as (url, _):
            made = make(kind, url=url)
            yield made
            made.close()
    else:
        yield make(kind, url=receiver.url)


def test_the_contract_of_a_sink(sink, capsys):
    sink.send([message()])
    sink.send([message("update", 2), message("resolve", 3, resolved=ONSET + 10**10)])
    sink.send([message()])  # again, after a crash
    assert sink.repeat is None or sink.repeat > 0
    assert sink.repeat_acknowledged in (True, False)
    if isinstance(sink, RowSink):
        rows = np.array([[1.0, np.nan], [3.0, 4.0]])
        told = Scored("p", ("flow", "level"), [ONSET, ONSET + 10**9], rows, [np.nan, 2.5], [0, 1])
        sink.rows(told)  # without bands, as of an entity whose rows have none
        sink.rows(told._replace(expected=rows, lower=rows - 1, upper=rows + 1))
        assert sink.flush()
        assert not sink.flush()  # they are gone


def test_rows_wait_while_the_receiver_is_away(receiver):
    pytest.importorskip("cramjam", reason="pip install 'vace-ad[prometheus]'")
    sink = make("remote-write", url=receiver.url)
    sink.rows(Scored("p", ("flow",), [ONSET], np.ones((1, 1)), [2.5], [False]))
    receiver.answer = 503
    with pytest.raises(SinkError, match="503"):
        sink.flush()
    receiver.answer = 200
    assert sink.flush()
    written = remote_write_codec.decode(receiver.got[-1]).series
    assert sorted(dict(labels)["__name__"] for labels, _ in written) == [
        "vace_alarm_state", "vace_score", "vace_value",
    ]  # fmt: skip


def test_stdout_lines(capsys):
    make("stdout").send([message()])
    assert json.loads(capsys.readouterr().out)["alarm"] == "a1"
    make("stdout", format="text").send([message()])
    assert (
        "open: pump/../#: anomaly in flow 80%, level 20% (flow 49.6, expected 31.0 to 35.0), "
        "flow and level stopped going together, severity 70 (high)"
    ) in capsys.readouterr().out


def test_an_open_alarm_is_a_series_with_its_severity_in_a_word():
    sink = make("prometheus")
    sink.send([message()])
    assert sink.series() == [(("a1", "pump/../#", "anomaly", "flow", "high"), 70.0)]


def test_a_message_brings_its_alarm_back_whole():
    told = Alarm.from_body(message())
    assert told.event.readings == (("flow", 49.6, 31.0, 35.0),)
    assert (told.event.partner, told.event.lasting, told.event.severity) == ("level", False, 70.0)


def test_a_webhook_sends_cloud_events(receiver):
    make("webhook", url=receiver.url).send([message()])
    (event,) = receiver.got
    assert {key: event[key] for key in ("specversion", "id", "type", "subject")} == {
        "specversion": "1.0", "id": "a1.1", "type": "vace.alarm.open", "subject": "pump/../#",
    }  # fmt: skip
    assert event["data"]["link"] == "http://127.0.0.1:8490/#alarm=a1"
    assert event["time"] == "2026-01-05T12:00:01.000Z"


@pytest.mark.parametrize(
    ("status", "kind"), [(500, SinkError), (429, SinkError), (400, SinkRefusedError)]
)
def test_answers_of_a_webhook(receiver, status, kind):
    receiver.answer = status
    with pytest.raises(kind) as caught:
        make("webhook", url=receiver.url).send([message()])
    assert type(caught.value) is kind


def test_nobody_there():
    with pytest.raises(SinkError, match="cannot be reached"):
        make("webhook", url="http://127.0.0.1:1/").send([message()])
    with pytest.raises(SinkError):
        make("mqtt", url="mqtt://127.0.0.1:1").send([message()])


def test_alertmanager_gets_the_newest_of_each_alarm(receiver):
    sink = make("alertmanager", url=receiver.url, labels={"site": "north"})
    sink.send([message(), message("resolve", 2, resolved=ONSET + 10**10)])
    ((alert,),) = receiver.got
    assert alert["labels"] == {
        "alertname": "VaceAnomaly", "entity": "pump/../#", "alarm": "a1", "incident": "a1",
        "site": "north", "severity": "high",
    }  # fmt: skip
    assert alert["endsAt"] == "2026-01-05T12:00:10.000Z"
    assert alert["annotations"]["channels"] == "flow, level"


def test_a_hostile_name_chooses_no_topic(tmp_path):
    paho = pytest.importorskip("paho.mqtt.client", reason="pip install 'vace-ad[live]'")
    with mosquitto(tmp_path) as (url, _):
        heard = []
        listener = paho.Client(paho.CallbackAPIVersion.VERSION2)
        listener.on_message = lambda client, user, message: heard.append(message.topic)
        listener.on_connect = lambda client, *rest: client.subscribe("#", qos=1)
        ready = []
        listener.on_subscribe = lambda *rest: ready.append(1)
        listener.connect("127.0.0.1", int(url.rsplit(":", 1)[1]))
        listener.loop_start()
        from live.running import until

        until(lambda: ready)
        sink = make("mqtt", url=url)
        sink.send([message()])
        until(lambda: heard)
        assert heard == ["vace/alarms/pump_..__"]
        sink.close()
        listener.disconnect()
        listener.loop_stop()
