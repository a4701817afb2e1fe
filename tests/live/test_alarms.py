import json
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.alarms.alarm_stream import Change
from vace_ad.alarms.events import Event, Reading
from vace_ad.live.alarms import Lifecycle, body
from vace_ad.live.sections import AlarmSettings

S = 10**9
RULES = AlarmSettings(resolve_after=60 * S, update_every=30 * S, silence_after=120 * S)


def change(what, alarm=0, start=0, end=0, severity=50.0, shares=(("flow", 1.0),)):
    event = Event(
        0, 0, 0, score=severity / 10, ratio=2.0, probability=1e-6, normal_rows=4176, alarm=alarm,
        severity=severity, signal="level", shares=shares,
        start_time=np.datetime64(start * S, "ns"), end_time=np.datetime64(end * S, "ns"),
        readings=(Reading("flow", 49.6, 31.0, 35.0),),
    )  # fmt: skip
    return Change(what, event)


def told(messages):
    return [(message.what, message.id) for message in messages]


def test_a_life():
    life = Lifecycle("p", RULES)
    (first,) = life.changes([change("open", start=100)], 110 * S, 0)
    assert (first.what, first.alarm.onset) == ("open", 100 * S)
    assert life.changes([change("update", start=100, severity=80.0)], 120 * S, 0) == []  # too soon
    (update,) = life.changes([change("update", start=100, severity=90.0)], 150 * S, 0)
    assert (update.what, update.alarm.event.severity) == ("update", 90.0)
    assert life.changes([change("update", start=100, severity=90.2)], 200 * S, 0) == []  # no news
    assert life.changes([change("resolve", start=100, end=210)], 215 * S, 0) == []
    assert life.tick(269 * S) == []
    (last,) = life.tick(270 * S)
    assert told([first, update, last]) == [
        ("open", f"{first.alarm.id}.1"), ("update", f"{first.alarm.id}.2"),
        ("resolve", f"{first.alarm.id}.3"),
    ]  # fmt: skip
    assert last.alarm.resolved == 270 * S
    assert first.alarm.event.severity == 50.0  # what was told stays as it was told


def test_the_strongest_event_speaks():
    life = Lifecycle("p", RULES)
    life.changes([change("open", 1, severity=70.0)], 10 * S, 0)
    life.changes([change("open", 2, severity=20.0, shares=(("level", 1.0),))], 20 * S, 0)
    alarm = life.open["anomaly", ""]
    assert (alarm.event.severity, alarm.event.shares[0][0]) == (70.0, "flow")
    assert alarm.events == ["anomaly-1", "anomaly-2"]
    life.changes([change("resolve", 1, end=30)], 30 * S, 0)
    assert alarm.quiet is None  # b is still open


def test_another_stream_has_other_identities():
    one = Lifecycle("p", RULES).changes([change("open")], 0, 0)
    other = Lifecycle("p", RULES).changes([change("open")], 0, 7)
    assert one[0].alarm.id != other[0].alarm.id


def test_silence_opens_once_and_ends_with_data():
    life = Lifecycle("p", RULES)
    (opened,) = life.silent(200 * S, 400 * S)
    assert (opened.alarm.kind, opened.alarm.onset) == ("no data", 200 * S)
    assert life.silent(200 * S, 410 * S) == []
    (resolved,) = life.heard(500 * S)
    assert resolved.what == "resolve"
    assert life.heard(510 * S) == []


STEPS = st.tuples(st.sampled_from("ours"), st.sampled_from("ab"), st.integers(1, 50))


@given(st.lists(STEPS, max_size=30), st.integers(0, 30))
def test_a_state_in_the_middle_changes_nothing(steps, cut):
    def run(parts):
        life, now, messages = Lifecycle("p", RULES), 0, []
        for part in parts:
            restored = Lifecycle("p", RULES)
            restored.restore(json.loads(json.dumps(life.state())))
            life = restored
            for letter, name, wait in part:
                now += wait * S
                if letter == "s":
                    messages += life.silent(now, now, name)
                    continue
                what = {"o": "open", "u": "update", "r": "resolve"}[letter]
                one = change(what, ord(name), now // S, now // S, float(wait))
                messages += life.changes([one], now, 0)
        return [(message.id, message.what, message.alarm) for message in messages]

    assert run([steps]) == run([steps[:cut], steps[cut:]])


def test_an_alarm_says_the_value_and_the_expected_range_of_its_first_suspect():
    life = Lifecycle("p", RULES)
    (first,) = life.changes([change("open", start=100)], 110 * S, 0)
    told = body(first, None)
    assert "(flow 49.6, expected 31.0 to 35.0), severity 50 (medium)" in told["summary"]
    assert told["readings"] == [{"channel": "flow", "value": 49.6, "low": 31.0, "high": 35.0}]
    assert (told["level"], told["unit_score"]) == ("medium", 0.5)
    assert (told["probability"], told["normal_rows"]) == (1e-6, 4176)
    again = Lifecycle("p", RULES)
    again.restore(json.loads(json.dumps(life.state())))
    (resolved,) = again.normal(first.alarm.id, 200 * S)
    assert body(resolved, None)["readings"] == told["readings"]


def test_an_event_at_rest_resolves_its_alarm_and_a_new_one_opens_when_it_wakes():
    life = Lifecycle("p", RULES)
    (first,) = life.changes([change("open", start=100)], 110 * S, 0)
    (resolved,) = life.changes([change("rest", start=100, end=130)], 195 * S, 0)
    assert (resolved.what, resolved.alarm.id) == ("resolve", first.alarm.id)
    (again,) = life.changes([change("wake", start=100, end=300)], 300 * S, 0)
    assert (again.what, again.alarm.onset) == ("open", 300 * S)
    assert again.alarm.id != first.alarm.id
    assert life.changes([change("resolve", start=100, end=310)], 320 * S, 0) == []
    assert [one.what for one in life.tick(370 * S)] == ["resolve"]


def test_conditions_outside_training_are_the_reason():
    life = Lifecycle("p", RULES)
    opened = change("open", start=100)
    opened = replace(opened, event=replace(opened.event, conditions="ambient 41, trained to 33"))
    (first,) = life.changes([opened], 110 * S, 0)
    told = body(first, None)
    assert told["reason"] == "conditions outside training: ambient 41, trained to 33"
    assert told["reason"] in told["summary"]


def test_a_state_of_an_earlier_release_is_taken_back():
    kept = {
        "id": "a1", "entity": "p", "kind": "anomaly", "channel": "", "onset": 100 * S,
        "events": ["anomaly-0"], "quiet": None, "resolved": None, "revision": 1, "sent": 110 * S,
        "severity": 50.0, "score": 5.0, "signal": "level", "probability": None,
        "normal_rows": 4176, "shares": [["flow", 1.0]], "readings": [["flow", 49.6, 31.0, 35.0]],
        "partner": None, "lasting": False, "patterns": [], "reason": None,
    }  # fmt: skip
    life = Lifecycle("p", RULES)
    life.restore({"heard": 7, "open": [kept]})
    (last,) = life.normal("a1", 200 * S)
    told = body(last, None)
    assert (told["severity"], told["probability"]) == (50.0, None)
    assert told["channels"] == [{"name": "flow", "share": 1.0}]
    assert "flow 49.6, expected 31.0 to 35.0" in told["summary"]
