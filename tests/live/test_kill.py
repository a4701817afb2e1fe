"""`kill -9` at any moment loses nothing: the alarms are those of an undisturbed run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from live import real
from live.cores import CORES
from live.feeds import CHANNELS, Receiver, config, feed, write
from vace_ad.live.runner import Watch

HERE = Path(__file__).parent
FAKE = {
    "n_rows": 600,
    "entities": ["p1", "p2", "p3", "p4", "p5"],
    "faults": [[i, i + 4, i % 3] for i in range(30, 560, 37)],
}
REAL = {
    "n_rows": 1200,
    "entities": ["p1", "p2", "p3", "p4"],  # one more than stay in memory
    "faults": [[150, 153, 1], [500, 503, 0], [900, 903, 2]],
}


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def alarms(events):
    """The messages of single alarms; those of one incident may come together."""
    return [one for event in events for one in event["data"].get("alarms", [event["data"]])]


def key(data):
    return (
        data["id"], data["what"], data["entity"], data["onset"], data["resolved"],
        data["score"], data["severity"], json.dumps(data["channels"]),
    )  # fmt: skip


def drain(folder, receiver, core):
    """Go on in peace until everything is read and sent; returns the entities in memory."""
    sink = [{"kind": "webhook", "url": receiver.url}]
    made = config(folder, sink=sink, alarms={"group": "1min"})
    watch = Watch(made, CORES[core].make())
    watch.start()
    for _ in range(4):
        watch.step()
    watch.checkpoint()
    end = time.monotonic() + 20
    while watch.store.waiting() and time.monotonic() < end:
        watch.step()
    found = {name: watch.registry.get(name) for name in watch.known}
    watch.close()
    return found


def killed(folder, receiver, given, rounds, core):
    """Watch the feed, killed so many times.

    Returns the number of messages up to the last kill, and of kills in the middle of a batch.
    """
    (folder / "feed.json").write_text(json.dumps(given))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])}
    command = [sys.executable, HERE / "kill_watch.py", folder, receiver.url, str(rounds), "1", core]
    done = subprocess.run(command, env=env, check=True, timeout=400, stdout=subprocess.PIPE)
    return len(alarms(receiver.got)), int(done.stdout)


@pytest.mark.parametrize(
    ("core", "given", "rounds"), [("fake", FAKE, 32), ("vace", REAL, 10)], ids=["fake", "vace"]
)
def test_kills_lose_nothing_and_double_nothing(tmp_path, receiver, core, given, rounds):
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    for folder in (calm, wild):
        folder.mkdir()
        CORES[core].save(folder / "model.json")
    write(calm, feed(**given))
    undisturbed = drain(calm, receiver, core)
    wanted = {key(one) for one in alarms(receiver.got)}
    n_alarms = len({one["alarm"] for one in alarms(receiver.got)})
    assert n_alarms >= 2 * len(given["entities"])
    receiver.got.clear()

    before, within = killed(wild, receiver, given, rounds, core)
    entities = drain(wild, receiver, core)
    found = [key(one) for one in alarms(receiver.got)]
    opened = {one["id"] for one in alarms(receiver.got) if one["what"] == "open"}
    assert {one for one in set(found) if "update" not in one[1]} == {
        one for one in wanted if "update" not in one[1]
    }
    assert set(found) <= wanted  # an update may give way to a newer one in the outbox
    assert len(opened) == n_alarms
    assert before > len(wanted) / 4  # the killed ones did most of the work
    assert within >= rounds / 8  # one round in four is torn in a batch
    assert {name: one.n_rows for name, one in entities.items()} == {
        name: one.n_rows for name, one in undisturbed.items()
    }
    if core == "vace":
        for name, entity in entities.items():
            check_scores(entity, given, name)


def check_scores(entity, given, name):
    """The stream after all the kills scores what comes next as the whole table is scored."""
    lines = [line for line in feed(**given) if line["entity"] == name]
    values = np.array([[line[channel] for channel in CHANNELS] for line in lines])
    more = np.random.default_rng(5).normal(size=(60, len(CHANNELS)))
    whole = np.concatenate([values[: entity.n_rows], more])
    first, rest = entity.stream.add(more), entity.stream.finish()
    final = np.concatenate([first.scores, rest.scores])
    detector = real.detector()
    np.testing.assert_array_equal(final, detector.score(whole)[-len(final) :])
    provisional = detector.stream(budget=real.BUDGET).add(whole).provisional
    np.testing.assert_array_equal(first.provisional, provisional[-60:])
    shown = np.array([score for _, score in entity.scores])  # of the last rows before
    np.testing.assert_array_equal(shown, provisional[:-60][len(provisional) - 60 - len(shown) :])
