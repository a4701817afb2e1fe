from vace_ad.live.alarms import Lifecycle
from vace_ad.live.sections import AlarmSettings
from vace_ad.live.silence import Silence

S = 10**9
NOW = 1_767_614_400 * S


def make(names=("a", "b", "c", "d")):
    silence = Silence(Lifecycle("", AlarmSettings(silence_after=60 * S)), 60 * S)
    silence.begin(names, None)
    silence.tick(NOW, None)
    return silence


def test_one_of_many():
    silence = make()
    silence.heard(["a", "b", "c"], NOW + 50 * S)
    assert silence.tick(NOW + 70 * S, None) == (["d"], [])
    assert silence.tick(NOW + 80 * S, None) == ([], [])  # told once
    silence.heard(["d"], NOW + 90 * S)
    silence.heard(["a", "b", "c"], NOW + 150 * S)
    assert silence.tick(NOW + 155 * S, None) == (["d"], [])  # silent again


def test_most_of_them_are_one_alarm_of_the_source():
    silence = make()
    silence.heard(["a"], NOW + 50 * S)
    names, (message,) = silence.tick(NOW + 70 * S, None)
    assert names == []
    assert (message.what, message.alarm.entity) == ("open", "")
    silence.heard(["a"], NOW + 71 * S)
    assert silence.tick(NOW + 72 * S, None) == ([], [])  # it stays open, and is not told twice
    silence.heard(["b", "c", "d"], NOW + 73 * S)
    _, (message,) = silence.tick(NOW + 74 * S, None)
    assert message.what == "resolve"


def test_a_source_that_is_down():
    silence = make(("a",))
    for second in range(0, 50, 10):
        silence.heard(["a"], NOW + second * S)
        assert silence.tick(NOW + second * S, "refused")[1] == []
    silence.heard(["a"], NOW + 60 * S)
    _, (message,) = silence.tick(NOW + 61 * S, "refused")
    assert message.alarm.kind == "no data"
    again = Silence(Lifecycle("", AlarmSettings(silence_after=60 * S)), 60 * S)
    again.begin(["a"], silence.state())  # after a restart
    again.heard(["a"], NOW + 70 * S)
    _, (message,) = again.tick(NOW + 71 * S, None)
    assert message.what == "resolve"


def test_off():
    silence = Silence(Lifecycle("", AlarmSettings(silence_after=None)), None)
    silence.begin(["a"], None)
    assert silence.tick(NOW + 10**6 * S, "down") == ([], [])
