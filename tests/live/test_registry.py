"""One damaged entity costs one entity."""

from __future__ import annotations

import logging
import sqlite3

import pytest

from live import feeds
from live.cores import CORES
from live.fakes import FakeCore
from live.feeds import Receiver, config, feed, write
from vace_ad.live.config import make_config
from vace_ad.live.runner import Watch


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def flip(path, query, column):
    """Flip one bit in the middle of the value that a query finds."""
    db = sqlite3.connect(path)
    (value,) = db.execute(f"select cast({column} as blob) {query}").fetchone()
    middle = len(value) // 2
    value = value[:middle] + bytes([value[middle] ^ 4]) + value[middle + 1 :]
    table = query.split()[1]
    where = query.partition(" where ")[2]
    db.execute(f"update {table} set {column} = ? where {where}", (value,))
    db.commit()
    db.close()


WHERE = {
    "small": ("from entity where name = 'p1'", "small"),
    "snapshot": ("from snapshot where name = 'p1'", "state"),
    "journal": ("from journal where name = 'p1' and row = 110", "cells"),
}


@pytest.mark.parametrize("kind", ["fake", "vace"])
@pytest.mark.parametrize("place", WHERE)
def test_a_bit_flipped_in_one_entity_costs_that_entity_alone(
    tmp_path, receiver, caplog, kind, place
):
    core = CORES[kind]
    core.save(tmp_path / "model.json")
    lines = feed(n_rows=200, faults=((100, 140, 1),), entities=("p1", "p2", "p3"))
    sink = [{"kind": "webhook", "url": receiver.url}]
    made = config(tmp_path, sink=sink, state={"snapshot_rows": 13})
    write(tmp_path, lines[: 3 * 108])
    watch = Watch(made, core.make())
    watch.start()
    for rows in (107, 111):  # a snapshot, and a few rows after it
        while watch.status.counts["rows"] < 3 * rows:
            watch.step()
        watch.checkpoint()
        if rows == 107:
            write(tmp_path, lines[3 * 108 : 3 * 112], "a")
    before = {one["alarm"] for one in watch.store.alarms(resolved=False)}
    watch.close()
    flip(made.state.path, *WHERE[place])
    write(tmp_path, lines[3 * 112 :], "a")
    receiver.got.clear()
    again = Watch(made, core.make())
    with caplog.at_level(logging.ERROR, "vace_ad.live"):
        again.start()
        while again.status.counts["rows"] < 3 * 86:
            again.step()
    assert [entity.n_rows < 100 for _, entity in sorted(again.entities.items())] == [
        True, False, False,
    ]  # fmt: skip
    again.close()
    assert again.status.counts["damaged"] == 1
    (line,) = [one for one in caplog.messages if "set aside" in one]
    assert "'p1': its state cannot be used" in line
    assert "its stream starts again" in line
    # its open alarm was told to be over, and no alarm of it stays open for ever
    ended = [e["data"] for e in receiver.got if e["type"] == "vace.alarm.resolve"]
    assert [e["entity"] for e in ended].count("p1") >= 1
    last = Watch(made, core.make())
    still = [one for one in last.store.alarms(resolved=False) if one["entity"] == "p1"]
    assert not before & {one["alarm"] for one in still}
    assert last.store._db.execute("select name from set_aside").fetchall() == [("p1",)]
    last.start()
    last.step()
    last.close()
    assert last.status.counts["damaged"] == 0  # once is enough


def test_a_learned_model_that_cannot_be_read_is_learned_anew(tmp_path, caplog):
    write(tmp_path, feed(n_rows=300, faults=()))
    data = feeds.settings(tmp_path)
    data["model"] = {"learn": "30min"}
    made = make_config(data)
    watch = Watch(made, FakeCore())
    watch.start()
    while watch.known.get("p1") != "watching" or watch.known.get("p2") != "watching":
        watch.step()
        watch.checkpoint()
    watch.close()
    folder = tmp_path / "watch.state.models"
    paths = sorted(folder.iterdir())
    assert len(paths) == 2
    paths[0].write_text("[")  # FakeCore reads JSON; the error of a real one is a ModelFileError

    class Core(FakeCore):
        def load(self, path):
            from vace_ad.errors import ModelFileError

            try:
                return super().load(path)
            except ValueError as error:
                raise ModelFileError(f"{path}: {error}") from None

    write(tmp_path, feed(n_rows=400, faults=())[600:], "a")
    for _ in range(2):  # a restart in between does not begin once more
        again = Watch(made, Core())
        again.start()
        for _ in range(3):
            again.step()
        again.close()
    assert min(again.known.values()).startswith("learning")
    assert sum(word == "watching" for word in again.known.values()) == 1
    assert again.status.counts["damaged"] == 0
    assert [path.suffix for path in sorted(folder.iterdir())].count(".damaged") == 1


def test_what_was_learned_of_an_entity_is_forgotten_with_it(tmp_path):
    write(tmp_path, feed(n_rows=300, faults=()))
    data = feeds.settings(tmp_path)
    data["model"] = {"learn": "30min"}
    watch = Watch(make_config(data), FakeCore())
    watch.start()
    while len(watch.known) < 2 or set(watch.known.values()) != {"watching"}:
        watch.step()
        watch.checkpoint()
    folder = tmp_path / "watch.state.models"
    assert len(list(folder.iterdir())) == 2
    done = watch.verdicts.remove("p1")
    nobody = watch.verdicts.remove("nobody")
    watch.step()
    assert done.result(0) is True
    assert nobody.result(0) is False
    assert list(watch.known) == ["p2"]
    assert len(list(folder.iterdir())) == 1
    watch.close()
    again = Watch(make_config(data), FakeCore())
    again.start()
    assert list(again.known) == ["p2"]
    again.close()


def test_damaged_rows_to_learn_from_are_learned_anew(tmp_path, caplog):
    lines = feed(n_rows=700, faults=())
    write(tmp_path, lines[:200])
    data = feeds.settings(tmp_path)
    data["model"] = {"learn": "30min"}
    watch = Watch(make_config(data), FakeCore())
    watch.start()
    while watch.status.counts["rows"] < 198:
        watch.step()
    watch.close()
    flip(tmp_path / "watch.state", "from journal where name = 'p1' and row = 50", "cells")
    write(tmp_path, lines[200:700], "a")
    again = Watch(make_config(data), FakeCore())
    again.start()
    while again.known.get("p2") != "watching":
        again.step()
        again.checkpoint()
    assert again.status.counts["damaged"] == 1
    write(tmp_path, lines[700:], "a")
    while again.known["p1"] != "watching":
        again.step()
        again.checkpoint()
    again.close()
    (line,) = [one for one in caplog.messages if "set aside" in one]
    assert "'p1'" in line
    assert "its training starts again" in line
