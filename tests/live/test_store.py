import sqlite3
import stat
import sys

import pytest

from vace_ad.errors import StateError
from vace_ad.live.alarms import Alarm
from vace_ad.live.database import JournalRow, Pending
from vace_ad.live.store import Store


@pytest.fixture
def store(tmp_path):
    one = Store(tmp_path / "a" / "state", outbox=3)
    yield one
    one.close()


def news(what, alarm="a", n=1):
    return ("hook", {"what": what, "alarm": alarm, "n": n}, 0)


def test_all_of_a_transaction_or_nothing(store):
    alarm = Alarm("a", "p", "anomaly", "", 5)
    whole = Pending(position={"n": 1}, entities={"p": (1, "watching", "{}")},
                    journal=[JournalRow("p", 0, 1, b"x")], alarms=[(alarm, {"alarm": "a"})],
                    outbox=[news("open")])  # fmt: skip
    store.commit(whole)
    broken = Pending(position={"n": 2}, outbox=[news("resolve")], alarms=[(alarm, {1, 2})])
    with pytest.raises(TypeError):
        store.commit(broken)
    assert store.position == {"n": 1}
    assert store.waiting() == {"hook": 1}
    assert store.roster() == [("p", 1, "watching")]
    again = store.reopen()
    assert again.journal("p") == [(0, 1, b"x")]
    again.close()


def test_a_full_disk_leaves_everything_as_it_was(store):
    store.commit(Pending(position={"n": 1}))
    pages = store._db.execute("pragma page_count").fetchone()[0]
    store._db.execute(f"pragma max_page_count = {pages}")
    big = Pending(position={"n": 2}, snapshots={"p": (1, "m", b"x" * 1_000_000)})
    with pytest.raises(sqlite3.OperationalError, match="full"):
        store.commit(big)
    assert store.position == {"n": 1}
    store._db.execute(f"pragma max_page_count = {pages + 1000}")
    store.commit(big)
    assert store.position == {"n": 2}


def test_a_snapshot_ends_the_journal_before_it(store):
    rows = [JournalRow("p", i, i, b"") for i in range(10)]
    store.commit(Pending(journal=rows, snapshots={"p": (7, "m", b"state")}))
    assert [row for row, _, _ in store.journal("p")] == [7, 8, 9]
    assert store.snapshot("p") == (7, "m", b"state")


def test_an_unsent_update_gives_way_and_the_outbox_is_bounded(store):
    store.commit(Pending(outbox=[news("open"), news("update", n=2), news("update", n=3)]))
    assert [message.body["n"] for message in store.queued("hook")] == [1, 3]
    store.commit(Pending(outbox=[news("resolve", n=4)]))
    assert [message.body["n"] for message in store.queued("hook")] == [1, 4]
    lost = store.commit(Pending(outbox=[news("open", f"b{i}", 5 + i) for i in range(3)]))
    assert lost == 2
    assert [message.body["n"] for message in store.queued("hook")] == [5, 6, 7]
    store.commit(Pending(sent={"hook": store.queued("hook")[1].seq}))
    assert store.waiting() == {"hook": 1}


def test_what_people_said_outlives_an_update(store):
    alarm = Alarm("a", "p", "anomaly", "", 5)
    store.commit(Pending(alarms=[(alarm, {"alarm": "a", "n": 1})]))
    assert store.mark("a", "acknowledged", "now")
    assert not store.mark("b", "acknowledged", "now")
    alarm.resolved = 9
    store.commit(Pending(alarms=[(alarm, {"alarm": "a", "n": 2})]))
    assert store.alarms(resolved=True) == [
        {"alarm": "a", "n": 2, "acknowledged": "now", "normal": None, "fault": None}
    ]
    assert store.alarms(resolved=False) == []
    store.forget(10)
    assert store.alarms() == []


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StateError, match="not a state file of vace watch"):
        Store(path)
    old = tmp_path / "old"
    store = Store(old)
    store.commit(Pending(meta={"version": "99"}))
    store.close()
    with pytest.raises(StateError, match="format 99"):
        Store(old)


def test_a_damaged_file_is_said_and_a_locked_one_waits(tmp_path):
    path = tmp_path / "state"
    store = Store(path)
    rows = [JournalRow("p", i, i, b"x" * 500) for i in range(200)]
    store.commit(Pending(position={"n": 1}, journal=rows))
    store._db.execute("pragma journal_mode = delete")
    store._db.execute("update meta set value = '{' where key = 'position'")
    with pytest.raises(StateError, match="is damaged"):
        _ = store.position
    store._db.execute("update meta set value = null where key = 'position'")
    store.close()
    content = bytearray(path.read_bytes())
    for page in range(8 * 4096, len(content), 4096):
        content[page : page + 100] = b"\xff" * 100
    path.write_bytes(content)
    store = Store(path)
    with pytest.raises(StateError, match="put back a copy"):
        store.journal("p")
    store.close()


def test_a_state_from_before_faults_could_be_called_so_is_taken_over(tmp_path):
    db = sqlite3.connect(tmp_path / "state")
    db.execute(
        "create table alarm (id text primary key, entity text, kind text, onset integer, "
        "resolved integer, body text, acknowledged text, normal text)"
    )
    db.execute("insert into alarm values ('a1', 'p', 'anomaly', 1, 2, '{}', null, 'then')")
    db.commit()
    db.close()
    store = Store(tmp_path / "state")
    assert store.alarms() == [{"acknowledged": None, "normal": "then", "fault": None}]
    assert store.mark("a1", "fault", "now")
    assert store.alarms()[0]["fault"] == "now"
    store.close()


def test_a_second_watch_on_the_same_state_is_refused_in_a_sentence(tmp_path):
    from live.fakes import FakeCore
    from live.feeds import config
    from vace_ad.executors.store import BusyError
    from vace_ad.live.runner import Watch

    made = config(tmp_path)
    first = Watch(made, FakeCore())
    with pytest.raises(BusyError, match=r"watch.state is in use by another watch; stop that one"):
        Watch(made, FakeCore())
    first.store.close()
    Watch(made, FakeCore()).store.close()  # whoever comes later has it


def test_a_watch_that_cannot_start_lets_the_state_go(tmp_path):
    from live.fakes import FakeCore
    from live.feeds import config
    from vace_ad.errors import ModelFileError
    from vace_ad.live.runner import Watch

    made = config(tmp_path)
    (tmp_path / "model.json").unlink()
    for _ in range(2):
        with pytest.raises(ModelFileError):
            Watch(made, FakeCore())


@pytest.mark.skipif(sys.platform == "win32", reason="needs file modes")
def test_only_its_owner_reads_a_state(tmp_path):
    path = tmp_path / "new" / "watch.state"
    store = Store(path, alone=True)
    store.commit(Pending(meta={"a": "b"}))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes.keys() >= {"watch.state", "watch.state-wal", "watch.state-shm"}
    assert {mode & 0o077 for name, mode in modes.items() if not name.endswith(".lock")} == {0}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    store.close()
    path.chmod(0o644)  # by an earlier release
    Store(path, alone=True).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_state_of_an_earlier_release_is_taken(tmp_path):
    path = tmp_path / "watch.state"
    db = sqlite3.connect(path)
    db.executescript(
        """create table entity (name text primary key, seen integer, phase text, small text)
        without rowid; create table snapshot (name text primary key, rows integer, model text,
        state blob); insert into entity values ('p1', 7, 'watching', '{"a": 1}');
        insert into snapshot values ('p1', 3, 'm', x'00');"""
    )
    db.close()
    store = Store(path, alone=True)
    assert store.entity("p1") == {"a": 1}
    assert store.snapshot("p1") == (3, "m", b"\x00")
    store.close()
