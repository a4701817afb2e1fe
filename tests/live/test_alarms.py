import json
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.alarms.events import Reading
from vace_ad.live.alarms import Lifecycle, body
from vace_ad.live.config import AlarmSettings

S = 10**9
RULES = AlarmSettings(resolve_after=60 * S, update_every=30 * S, silence_after=120 * S)


def change(what, name="e1", start=0, end=0, severity=50.0, kind="anomaly", shares=(("flow", 1.0),)):
    return SimpleNamespace(
        what=what,
        event=SimpleNamespace(
            id=name, kind=kind, severity=severity, score=severity / 10, signal="level",
            probability=1e-6, normal_rows=4176, partner=None, lasting=False,
            readings=(Reading("flow", 49.6, 31.0, 35.0),),
            shares=shares, start_time=np.datetime64(start * S, "ns"),
            end_time=np.datetime64(end * S, "ns"),
        ),
    )  # fmt: skip


def told(messages):
    return [(message.what, message.id) for message in messages]


def test_a_life():
    life = Lifecycle("p", RULES)
    (first,) = life.changes([change("open", start=100)], 110 * S, 0)
    assert (first.what, first.alarm.onset) == ("open", 100 * S)
    assert life.changes([change("update", start=100, severity=80.0)], 120 * S, 0) == []  # too soon
    (update,) = life.changes([change("update", start=100, severity=90.0)], 150 * S, 0)
    assert (update.what, update.alarm.severity) == ("update", 90.0)
    assert life.changes([change("update", start=100, severity=90.2)], 200 * S, 0) == []  # no news
    assert life.changes([change("resolve", start=100, end=210)], 215 * S, 0) == []
    assert life.tick(269 * S) == []
    (last,) = life.tick(270 * S)
    assert told([first, update, last]) == [
        ("open", f"{first.alarm.id}.1"), ("update", f"{first.alarm.id}.2"),
        ("resolve", f"{first.alarm.id}.3"),
    ]  # fmt: skip
    assert last.alarm.resolved == 270 * S
    assert first.alarm.severity == 50.0  # what was told stays as it was told


def test_the_strongest_event_speaks():
    life = Lifecycle("p", RULES)
    life.changes([change("open", "a", severity=70.0)], 10 * S, 0)
    life.changes([change("open", "b", severity=20.0, shares=(("level", 1.0),))], 20 * S, 0)
    alarm = life.open["anomaly", ""]
    assert (alarm.severity, alarm.shares[0][0]) == (70.0, "flow")
    assert alarm.events == ["a", "b"]
    life.changes([change("resolve", "a", end=30)], 30 * S, 0)
    assert alarm.quiet is None  # b is still open


def test_another_stream_has_other_identities():
    one = Lifecycle("p", RULES).changes([change("open")], 0, 0)
    other = Lifecycle("p", RULES).changes([change("open")], 0, 7)
    assert one[0].alarm.id != other[0].alarm.id


def test_short_gaps_are_no_alarm_and_a_told_silence_is_not_told_again():
    life = Lifecycle("p", RULES)
    assert life.changes([change("open", "g", start=100, kind="no data")], 150 * S, 0) == []
    assert life.changes([change("resolve", "g", start=100, kind="no data")], 160 * S, 0) == []
    (opened,) = life.silent(200 * S, 400 * S)
    assert opened.alarm.kind == "no data"
    (resolved,) = life.heard(500 * S)
    assert resolved.what == "resolve"
    assert life.changes([change("open", "h", start=200, kind="no data")], 510 * S, 0) == []
    (late,) = life.changes([change("open", "i", start=600, kind="no data")], 800 * S, 0)
    assert (late.what, late.alarm.kind) == ("open", "no data")
    (end,) = life.changes([change("resolve", "i", start=600, kind="no data")], 810 * S, 0)
    assert end.what == "resolve"


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
                one = change(what, name, now // S, now // S, float(wait))
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
