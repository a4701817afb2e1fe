"""One cause is one message: alarms that open together share an incident."""

import json
import time

import pytest

from live.fakes import FakeCore
from live.feeds import Receiver, config, feed, write
from vace_ad.alarms.events import Event
from vace_ad.live.alarms import Alarm, Message, body
from vace_ad.live.clock import SetClock
from vace_ad.live.incidents import Incidents, merged
from vace_ad.live.runner import Watch
from vace_ad.live.sinks.stdout import StdoutSettings, StdoutSink

SECOND = 10**9
T = 1_767_614_400 * SECOND


def message(entity, seconds, what="open", severity=50.0):
    alarm = Alarm(f"a-{entity}", entity, "anomaly", "", T, event=Event(0, 0, 0, severity=severity))
    return Message(f"a-{entity}.{1 if what == 'open' else 2}", what, alarm, T + seconds * SECOND)


def told(incidents, *messages):
    return [body(one, None) | incidents.facts(one) for one in messages]


def test_alarms_that_open_within_the_time_are_one_incident():
    one = Incidents(60 * SECOND, lambda alarm: None)
    found = told(one, message("p1", 0), message("p2", 40), message("p3", 60), message("p4", 61))
    assert [each["incident"] for each in found] == ["a-p1", "a-p1", "a-p1", "a-p4"]
    assert [each["joined"] for each in found] == [False, True, True, False]
    assert found[2]["entities"] == ["p1", "p2", "p3"]
    # a replay brings another entity's old rows later
    assert told(one, message("p5", 10))[0]["incident"] == "a-p1"


def test_without_a_time_every_alarm_is_alone():
    one = Incidents(0, lambda alarm: None)
    found = told(one, message("p1", 0), message("p2", 0))
    assert [each["incident"] for each in found] == ["a-p1", "a-p2"]


def test_an_alarm_keeps_its_incident_over_a_restart():
    one = Incidents(60 * SECOND, lambda alarm: None)
    kept = {
        each["alarm"]: each["incident"] for each in told(one, message("p1", 0), message("p2", 9))
    }
    again = Incidents(60 * SECOND, kept.get)
    again.restore(one.state())
    found = told(again, message("p2", 500, "resolve"), message("p3", 30))
    assert [each["incident"] for each in found] == ["a-p1", "a-p1"]
    assert found[1]["entities"] == ["p1", "p2", "p3"]
    assert (
        told(Incidents(60 * SECOND, lambda alarm: None), message("p9", 0, "update"))[0]["incident"]
        == "a-p9"
    )


def test_many_entities_are_counted_and_some_are_named():
    one = Incidents(60 * SECOND, lambda alarm: None)
    last = told(one, *(message(f"p{i}", 0) for i in range(80)))[-1]
    assert (last["n_entities"], len(last["entities"])) == (80, 50)


def test_messages_are_grouped_by_incident_and_by_what_they_say():
    one = Incidents(60 * SECOND, lambda alarm: None)
    found = told(one, message("p1", 0), message("p2", 1, severity=90.0), message("p8", 300),
                 message("p1", 200, "resolve"))  # fmt: skip
    whole, *others = merged(found)
    assert [one["entity"] for one in others] == ["p8", "p1"]
    assert whole["entities"] == ["p1", "p2"]
    assert "2 entities (p1, p2); the strongest is p2" in whole["summary"]


def test_standard_output_has_one_line_for_an_incident(capsys):
    one = Incidents(60 * SECOND, lambda alarm: None)
    messages = told(one, message("p1", 0), message("p2", 1), message("p8", 300))
    StdoutSink(StdoutSettings()).send(messages)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2
    assert [each["alarm"] for each in lines[0]["alarms"]] == ["a-p1", "a-p2"]
    assert lines[1]["alarm"] == "a-p8"
    StdoutSink(StdoutSettings(format="text")).send(messages)
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def test_a_cause_that_hits_three_entities_is_one_post(tmp_path, receiver):
    write(tmp_path, feed(n_rows=300, entities=("p1", "p2", "p3"), faults=((100, 110, 1),)))
    sink = [{"kind": "webhook", "url": receiver.url}]
    made = config(tmp_path, sink=sink, alarms={"group": "1min"})
    # a clock that stands still: however slow the machine is, alarms wait for each other
    watch = Watch(made, FakeCore(), clock=SetClock(time.time_ns()))
    watch.start()
    for _ in range(4):
        watch.step()
    watch.close()
    opened = [event for event in receiver.got if event["type"].endswith("open")]
    assert [event["type"] for event in opened] == ["vace.incident.open"]
    data = opened[0]["data"]
    assert data["entities"] == ["p1", "p2", "p3"]
    assert {one["incident"] for one in data["alarms"]} == {data["alarms"][0]["alarm"]}
    ended = [event for event in receiver.got if event["type"].endswith("resolve")]
    assert {one["incident"] for e in ended for one in e["data"].get("alarms", [e["data"]])} == {
        data["incident"]
    }
