import json
import sqlite3
import threading
import time

import numpy as np
import pytest

from live.fakes import FakeCore, FakeModel
from live.feeds import CHANNELS, START, STEP, Receiver, config, feed, model, write
from vace_ad.errors import StateError
from vace_ad.live.database import Pending
from vace_ad.live.runner import Watch
from vace_ad.live.store import Store


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def hook(receiver, **more):
    return [{"kind": "webhook", "url": receiver.url, **more}]


def once(folder, **sections):
    """Watch a feed to its end."""
    source = {"follow": False, **sections.pop("source", {})}
    watch = Watch(config(folder, source=source, **sections), FakeCore())
    watch.run()
    return watch


def batch_events(lines, name):
    """The events of one entity, by the fake stream in one go."""
    rows = np.array([[line[c] for c in CHANNELS] for line in lines if line["entity"] == name])
    time = np.array([line["time"] for line in lines if line["entity"] == name], "datetime64[ns]")
    stream = model().stream()
    changes = [*stream.add(rows, time).changes, *stream.finish().changes]
    return [change.event for change in changes if change.what == "resolve"]


def test_alarms_of_a_feed_open_and_resolve_with_the_channel_at_fault(tmp_path, receiver):
    lines = feed()
    write(tmp_path, lines)
    watch = once(tmp_path, sink=hook(receiver))
    events = [event["data"] for event in receiver.got]
    told = [
        (e["entity"], e["what"], e["channels"][0]["name"]) for e in events if e["what"] != "update"
    ]
    assert sorted(told) == sorted(
        (name, what, channel)
        for name in ("p1", "p2") for what in ("open", "resolve") for channel in ("level", "power")
    )  # fmt: skip
    for name in ("p1", "p2"):
        last = {e["alarm"]: e["score"] for e in events if e["entity"] == name}
        assert list(last.values()) == [event.score for event in batch_events(lines, name)]
    assert receiver.got[0]["specversion"] == "1.0"
    assert receiver.got[0]["type"] == "vace.alarm.open"
    assert watch.status.counts["rows"] == len(lines)
    assert watch.status.registry.get_sample_value("vace_alert_seconds_count") > 0


def test_what_comes_within_resolve_after_is_the_same_alarm(tmp_path, receiver):
    write(tmp_path, feed(faults=((100, 105, 0), (110, 115, 0)), entities=("p1",)))
    once(tmp_path, sink=hook(receiver))
    assert [e["type"] for e in receiver.got if "update" not in e["type"]] == [
        "vace.alarm.open", "vace.alarm.resolve",
    ]  # fmt: skip
    resolved = receiver.got[-1]["data"]
    # quiet since row 114, resolved two minutes later
    assert resolved["resolved"].startswith("2026-01-05T12:2")


def test_a_stop_in_the_middle_changes_nothing(tmp_path, receiver):
    lines = feed()
    write(tmp_path, lines)
    (tmp_path / "whole").mkdir()
    write(tmp_path / "whole", lines)
    once(tmp_path / "whole", sink=hook(receiver))
    whole = [e["data"] for e in receiver.got]
    receiver.got.clear()
    write(tmp_path, [])
    for part in range(0, len(lines), 97):
        write(tmp_path, lines[part : part + 97], "a")
        watch = Watch(
            config(tmp_path, sink=hook(receiver), state={"snapshot_rows": 17}), FakeCore()
        )
        watch.start()
        for _ in range(3):
            watch.step()
        watch.close()
    once(tmp_path, sink=hook(receiver))
    parts = [e["data"] for e in receiver.got]
    key = lambda e: (e["id"], e["what"], e["score"], e["onset"], json.dumps(e["channels"]))  # noqa: E731
    assert sorted(map(key, parts)) == sorted(map(key, whole))


def test_learning_then_alarms(tmp_path, receiver):
    write(tmp_path, feed(n_rows=400, faults=((300, 320, 1),)))
    sections = {"sink": hook(receiver), "model": {"file": None, "learn": "30min"}}
    sections["model"] = {"learn": "30min"}
    from live import feeds

    data = feeds.settings(tmp_path, **{k: v for k, v in sections.items() if k != "model"})
    data["model"] = sections["model"]
    data["source"]["follow"] = False
    from vace_ad.live.config import make_config

    watch = Watch(make_config(data), FakeCore())
    watch.start()
    entity = None
    while watch.step():
        pass
    watch.close()
    told = [
        (e["data"]["entity"], e["data"]["what"]) for e in receiver.got if "update" not in e["type"]
    ]
    assert sorted(told) == [("p1", "open"), ("p1", "resolve"), ("p2", "open"), ("p2", "resolve")]
    assert {e["data"]["channels"][0]["name"] for e in receiver.got} == {"level"}
    assert entity is None


def test_a_fit_that_breaks_ends_neither_the_watch_nor_the_learning(tmp_path):
    from live import feeds
    from vace_ad.live.config import make_config

    class Broken(FakeCore):
        def fit(self, rows, channels, time, path):
            raise FloatingPointError("overflow")

    write(tmp_path, feed(n_rows=200, entities=("p1",)))
    data = feeds.settings(tmp_path)
    data["model"], data["source"]["follow"] = {"learn": "30min"}, False
    watch = Watch(make_config(data), Broken())
    watch.run()
    assert watch.known["p1"].startswith("learning")


def test_a_sink_that_breaks_is_tried_again(tmp_path, receiver, monkeypatch):
    from vace_ad.live.sinks.webhook import WebhookSink

    real, calls = WebhookSink.send, []

    def send(self, messages):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a mistake in the plug-in")
        real(self, messages)

    monkeypatch.setattr(WebhookSink, "send", send)
    write(tmp_path, feed(n_rows=150))
    watch = once(tmp_path, sink=hook(receiver))
    assert watch.status.counts["send_failed"] == 1
    assert sum(e["type"] == "vace.alarm.open" for e in receiver.got) == 2


def test_progress_of_learning_is_said(tmp_path):
    from live import feeds
    from vace_ad.live.config import make_config

    write(tmp_path, feed(n_rows=112, entities=("p1",)))
    data = feeds.settings(tmp_path)
    data["model"] = {"learn": "30min"}
    watch = Watch(make_config(data), FakeCore())
    watch.start()
    watch.step()
    watch.checkpoint()
    assert watch.known["p1"] == "learning, 61%"
    watch.close()
    again = Watch(make_config(data), FakeCore())
    again.start()
    assert again.known["p1"] == "learning, 61%"
    again.close()


def test_idle_entities_go_to_disk_and_come_back(tmp_path, receiver):
    lines = feed(entities=tuple(f"p{i}" for i in range(8)), n_rows=150)
    write(tmp_path, lines)
    watch = Watch(
        config(tmp_path, sink=hook(receiver), state={"active": 2}, source={"follow": False}),
        FakeCore(),
    )
    watch.start()
    watch._ticked = 0
    seen = []
    write(tmp_path, [])
    for part in range(0, len(lines), 100):
        write(tmp_path, lines[part : part + 100], "a")
        watch.step()
        watch._tick()
        seen.append(len(watch.entities))
    watch.step()
    watch.close()
    assert max(seen) <= 2
    opened = {e["data"]["entity"] for e in receiver.got if e["type"] == "vace.alarm.open"}
    assert len(opened) == 8


def test_after_a_restart_nobody_is_idle_at_once(tmp_path):
    write(tmp_path, feed(n_rows=20))
    once(tmp_path)
    watch = Watch(config(tmp_path), FakeCore())
    watch.start()
    watch.registry.get("p1")  # by a verdict, say
    watch._tick()
    assert "p1" in watch.entities
    watch.close()


def test_a_state_of_another_model_is_refused(tmp_path):
    write(tmp_path, feed(n_rows=20))
    once(tmp_path)
    FakeModel(CHANNELS, [1.0] * 3, [1.0] * 3).save(tmp_path / "model.json")
    with pytest.raises(StateError, match="belongs to another model"):
        once(tmp_path)


def test_a_sink_that_is_down_loses_nothing(tmp_path, receiver):
    write(tmp_path, feed())
    receiver.answer = 503
    watch = once(tmp_path, sink=hook(receiver))
    assert watch.status.counts["send_failed"] > 0
    assert receiver.got == []
    receiver.answer = 200
    again = Watch(config(tmp_path, sink=hook(receiver)), FakeCore())
    again.start()
    end = time.monotonic() + 5
    while again.store.waiting() and time.monotonic() < end:
        again.step()
    again.close()
    assert sum(e["type"] == "vace.alarm.open" for e in receiver.got) == 4


def test_the_outbox_is_bounded_and_says_so(tmp_path, receiver):
    receiver.answer = 503
    write(tmp_path, feed(n_rows=700, faults=tuple((i, i + 3, 0) for i in range(50, 600, 25))))
    watch = once(tmp_path, sink=hook(receiver), state={"outbox": 10})
    store = Store(watch.store.path)
    assert store.waiting() == {"webhook": 10}
    assert watch.status.counts["outbox_dropped"] > 0
    store.close()


def test_a_message_that_is_refused_for_good_does_not_hold_up_the_others(tmp_path, receiver):
    write(tmp_path, feed(n_rows=150))
    receiver.answer = 400
    watch = once(tmp_path, sink=hook(receiver))
    assert watch.status.counts["refused"] >= 4
    store = Store(watch.store.path)
    assert store.waiting() == {}
    store.close()


def test_a_full_disk_stops_reading_and_loses_nothing(tmp_path, receiver):
    lines = feed()
    write(tmp_path, lines[:100])
    watch = Watch(config(tmp_path, sink=hook(receiver)), FakeCore())
    thread = threading.Thread(target=watch.run, daemon=True)
    real, full = watch.store.commit, threading.Event()

    def commit(pending: Pending) -> int:
        if full.is_set():
            raise sqlite3.OperationalError("database or disk is full")
        return real(pending)

    watch.store._db.close()  # the thread that runs opens its own
    watch.store.__init__(watch.store.path)
    watch.store._db.close()

    def run():
        watch.store.__init__(watch.store.path)
        watch.run()

    watch.store.commit = commit
    real = lambda pending: Store.commit(watch.store, pending)  # noqa: E731
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until(lambda: watch.status.counts["rows"] >= 90)
    full.set()
    write(tmp_path, lines[100:], "a")
    until(lambda: "state" in watch.status.problems)
    assert not watch.status.ready
    assert "reading has stopped" in watch.status.problems["state"]
    rows = watch.status.counts["rows"]
    time.sleep(0.3)
    assert watch.status.counts["rows"] == rows
    full.clear()
    until(lambda: len({e["data"]["alarm"] for e in receiver.got}) == 4, 15)
    assert watch.status.ready
    watch.stop()
    thread.join(5)
    assert not thread.is_alive()


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.01)


def test_a_silent_sensor_is_its_own_kind(tmp_path, receiver):
    lines = feed(entities=("p1",), faults=(), n_rows=200)
    for i, line in enumerate(lines):
        if 50 <= i < 150:
            del line["power"]
    write(tmp_path, lines)
    once(tmp_path, sink=hook(receiver), alarms={"silence_after": "5min"})
    told = [(e["data"]["kind"], e["data"]["channel"], e["data"]["what"]) for e in receiver.got]
    assert told == [("no data", "power", "open"), ("no data", "power", "resolve")]
    assert receiver.got[0]["data"]["onset"] == "2026-01-05T12:08:10.000Z"


def test_a_silent_source_is_one_alarm_and_ends_when_data_come(tmp_path, receiver):
    write(tmp_path, feed(n_rows=20, faults=()))
    watch = Watch(
        config(tmp_path, sink=hook(receiver), alarms={"silence_after": "500ms"}), FakeCore()
    )
    watch.start()
    for _ in range(3):
        watch.step()
    time.sleep(0.6)
    watch._tick()
    watch.checkpoint()
    write(tmp_path, feed(n_rows=25, faults=())[-10:], "a")
    watch.step()
    watch._tick()
    watch.close()
    told = [(e["data"]["entity"], e["data"]["kind"], e["data"]["what"]) for e in receiver.got]
    assert told == [("", "no data", "open"), ("", "no data", "resolve")]


def test_one_silent_entity_among_others(tmp_path, receiver):
    everyone = ("p1", "p2", "p3", "p4")
    write(tmp_path, feed(n_rows=10, faults=(), entities=everyone))
    watch = Watch(
        config(tmp_path, sink=hook(receiver), alarms={"silence_after": "500ms"}), FakeCore()
    )
    watch.start()
    watch.step()
    time.sleep(0.6)
    others = [x for x in feed(n_rows=12, faults=(), entities=everyone)[40:] if x["entity"] != "p2"]
    write(tmp_path, others, "a")
    watch.step()
    watch._tick()
    watch.checkpoint()
    write(tmp_path, feed(n_rows=14, faults=(), entities=("p2",))[11:], "a")
    watch.step()
    watch.close()
    told = [(e["data"]["entity"], e["data"]["kind"], e["data"]["what"]) for e in receiver.got]
    assert told == [("p2", "no data", "open"), ("p2", "no data", "resolve")]


def test_too_many_entities_and_channels_are_counted(tmp_path):
    lines = [
        {"time": START + i * STEP, "entity": f"e{i % 5}", "flow": 1.0, "other": 2.0}
        for i in range(50)
    ]
    write(tmp_path, lines)
    watch = once(tmp_path, limits={"entities": 3})
    assert watch.status.counts["too_many_entities"] == 20
    assert watch.status.counts["unknown_channel"] == 30


def test_an_open_alarm_is_repeated_until_acknowledged(tmp_path, receiver):
    write(tmp_path, feed(n_rows=110, entities=("p1",)))
    watch = Watch(config(tmp_path, sink=hook(receiver, repeat="100ms")), FakeCore())
    watch.start()
    watch.step()
    watch.checkpoint()
    until(lambda: len(receiver.got) >= 4)
    (ids,) = {frozenset([e["data"]["alarm"]]) for e in receiver.got}
    repeats = [e["id"] for e in receiver.got if e["id"] == receiver.got[-1]["id"]]
    assert len(repeats) >= 3
    (alarm,) = ids
    assert watch.store.mark(alarm, "acknowledged", "2026-01-05T12:00:00Z")
    time.sleep(0.8)
    n = len(receiver.got)
    time.sleep(0.8)
    assert len(receiver.got) == n
    watch.close()


def test_an_entity_whose_partition_went_elsewhere_leaves_no_alarm_and_no_silence(tmp_path):
    write(tmp_path, feed(n_rows=110, faults=((100, 140, 1),)))
    made = config(tmp_path, alarms={"silence_after": "1s"})
    watch = Watch(made, FakeCore())
    watch.start()
    watch.step()
    watch.checkpoint()
    assert {one["entity"] for one in watch.store.alarms(resolved=False)} == {"p1", "p2"}
    watch.source.lost = ["p1", "never seen"]
    watch.step()
    assert {one["entity"] for one in watch.store.alarms(resolved=False)} == {"p2"}
    assert watch.known["p1"] == "watched elsewhere"
    assert "p1" not in watch.entities
    n_rows = watch.store.entity("p1")["n_rows"]
    watch.close()
    again = Watch(made, FakeCore())
    again.start()
    again.source.live = True
    again._tick()
    time.sleep(1.1)
    again._tick()  # p2 alone is silent
    again.checkpoint()
    silent = [one["entity"] for one in again.store.alarms() if one["kind"] == "no data"]
    assert "p1" not in silent
    write(tmp_path, feed(n_rows=130)[220:], "a")  # the partition comes back
    again.step()
    assert again.known["p1"] == "watching" or again.entities["p1"].phase == "watching"
    assert again.entities["p1"].n_rows > n_rows
    again.close()


def test_a_clock_behind_the_devices_is_said_and_the_watch_is_not_ready(
    tmp_path, monkeypatch, caplog
):
    write(tmp_path, feed(n_rows=20))
    watch = Watch(config(tmp_path), FakeCore())
    watch.start()
    monkeypatch.setattr("time.time_ns", lambda: START - 3600 * 10**9)
    watch.step()
    assert watch.status.counts["future"] == 20 * 2 * 3
    assert not watch.status.ready
    assert "up to 1 h 3 min ahead of this machine's clock" in watch.status.problems["clock"]
    assert sum("ahead of this machine's clock" in line for line in caplog.messages) == 1
    monkeypatch.setattr("time.time_ns", lambda: START + 3600 * 10**9)
    write(tmp_path, feed(n_rows=40)[40:], "a")
    watch.step()
    assert watch.status.ready
    watch.close()


def test_one_device_ahead_of_the_others_leaves_the_watch_ready(tmp_path, monkeypatch):
    write(tmp_path, feed(n_rows=5))
    watch = Watch(config(tmp_path), FakeCore())
    watch.start()
    monkeypatch.setattr("time.time_ns", lambda: START)
    watch.step()
    ahead = [{**line, "time": line["time"] + 3600 * 10**9} for line in feed(n_rows=9)[10:]]
    write(tmp_path, ahead, "a")
    watch.step()
    assert watch.status.counts["future"] > 0
    assert watch.status.ready
    watch.close()


def test_where_a_file_began_is_kept_before_its_first_line(tmp_path):
    write(tmp_path, feed(n_rows=20))
    watch = Watch(config(tmp_path), FakeCore())
    watch.start()
    assert watch.store.position["file"]["offset"] == 0
    watch.source.close()
    watch.store.close()  # killed before anything was read, and then the file was moved away
    (tmp_path / "feed.jsonl").rename(tmp_path / "feed.jsonl.1")
    write(tmp_path, feed(n_rows=40)[40:])
    again = Watch(config(tmp_path), FakeCore())
    again.start()
    while again.status.counts["readings"] < 40 * 2 * 3:
        again.step()
    again.close()
