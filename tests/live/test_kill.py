"""`kill -9` at any moment loses nothing: the alarms are those of an undisturbed run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from live.fakes import FakeCore
from live.feeds import Receiver, config, feed, write
from vace_ad.live.runner import Watch

HERE = Path(__file__).parent
FEED = {
    "n_rows": 600,
    "entities": ["p1", "p2", "p3", "p4", "p5"],
    "faults": [[i, i + 4, i % 3] for i in range(30, 560, 37)],
}
ROUNDS = 200


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def key(event):
    data = event["data"]
    return (
        event["id"], event["type"], data["entity"], data["onset"], data["resolved"],
        data["score"], data["severity"], json.dumps(data["channels"]),
    )  # fmt: skip


def drain(folder, receiver):
    """Go on in peace until everything is read and sent."""
    watch = Watch(config(folder, sink=[{"kind": "webhook", "url": receiver.url}]), FakeCore())
    watch.start()
    for _ in range(4):
        watch.step()
    watch.checkpoint()
    end = time.monotonic() + 20
    while watch.store.waiting() and time.monotonic() < end:
        watch.step()
    watch.close()


def test_two_hundred_kills_lose_nothing_and_double_nothing(tmp_path, receiver):
    calm = tmp_path / "calm"
    calm.mkdir()
    write(calm, feed(**FEED))
    drain(calm, receiver)
    wanted = {key(event) for event in receiver.got}
    assert len({event["data"]["alarm"] for event in receiver.got}) == 5 * 15
    receiver.got.clear()

    (tmp_path / "feed.json").write_text(json.dumps(FEED))
    config(tmp_path)  # writes the model
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])}
    command = [sys.executable, HERE / "kill_watch.py", tmp_path, receiver.url, str(ROUNDS), "1"]
    subprocess.run(command, env=env, check=True, timeout=400)
    before = len(receiver.got)
    drain(tmp_path, receiver)
    found = [key(event) for event in receiver.got]
    opened = {event["id"] for event in receiver.got if event["type"].endswith("open")}
    assert {one for one in set(found) if "update" not in one[1]} == {
        one for one in wanted if "update" not in one[1]
    }
    assert set(found) <= wanted  # an update may give way to a newer one in the outbox
    assert len(opened) == 5 * 15
    assert before > len(wanted) / 4  # the killed ones did most of the work
