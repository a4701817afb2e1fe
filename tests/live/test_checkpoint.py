"""A batch is kept in parts, and comes again whole after a crash."""

import time as clock

import pytest

from live.fakes import FakeCore, FakeStream
from live.feeds import Receiver, config, feed, settings, write
from vace_ad.live import checkpoint, runner
from vace_ad.live.config import make_config
from vace_ad.live.runner import Watch

NAMES = tuple(f"p{i}" for i in range(12))


class CrashError(BaseException):
    """The process is gone."""


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def made(folder, receiver, align=None):
    """A watch that reads a file to its end; `align` replaces the section."""
    sink = [{"kind": "webhook", "url": receiver.url}]
    data = settings(folder, sink=sink, source={"follow": False})
    return Watch(make_config(data | ({} if align is None else {"align": align})), FakeCore())


def told(receiver):
    """The messages, without updates: an unsent one gives way to a newer one."""
    keys = ("id", "what", "entity", "score", "onset", "resolved")
    events = (event["data"] for event in receiver.got)
    return sorted(tuple(e[k] for k in keys) for e in events if e["what"] != "update")


def crash_after(watch, commits):
    """Let a watch work, and end it as a kill would within a batch, after so many commits."""
    real, n = watch.store.commit, 0

    def commit(pending):
        nonlocal n
        lost = real(pending)
        n += 1
        if n == commits:
            raise CrashError
        return lost

    watch.store.commit = commit
    with pytest.raises(CrashError):
        watch.step()
    watch.source.close()
    for delivery in watch.deliveries:
        delivery.stop(5)
    watch.store.close()


@pytest.mark.parametrize(
    "align", [{"step": "10s"}, {}, {"step": "10s", "lateness": "30s"}], ids=["step", "bare", "late"]
)
@pytest.mark.parametrize("commits", [1, 7, 12])
def test_a_batch_that_comes_again_changes_no_score_and_is_counted(
    tmp_path, receiver, monkeypatch, commits, align
):
    lines = feed(n_rows=130, entities=NAMES, faults=((50, 60, 1),))
    for folder in (tmp_path / "calm", tmp_path / "wild"):
        folder.mkdir()
        write(folder, lines)
    calm = made(tmp_path / "calm", receiver, align)
    calm.run()
    wanted = told(receiver)
    assert len(wanted) == 2 * len(NAMES)
    receiver.got.clear()

    for limit in ("_TOGETHER", "_WORK", "_SHARE"):
        monkeypatch.setattr(checkpoint, limit, 0)
    wild = made(tmp_path / "wild", receiver, align)
    wild.start()
    crash_after(wild, commits)
    again = made(tmp_path / "wild", receiver, align)
    again.run()
    assert set(told(receiver)) == set(wanted)
    counts, before = again.status.counts, wild.status.counts
    assert before["rows"] + counts["rows"] == calm.status.counts["rows"] == len(lines)
    assert counts["replayed"] == before["readings"] == 3 * 130 * commits
    assert counts["late"] == counts["twice"] == 0


def test_an_alarm_goes_out_while_the_batch_is_worked_off(tmp_path, receiver, monkeypatch):
    write(tmp_path, feed(n_rows=60, entities=NAMES, faults=((40, 50, 1),)))
    watch = made(tmp_path, receiver)
    watch.start()
    acknowledged, sent = [], []
    real = FakeStream.add

    def add(self, rows, time=None):
        clock.sleep(0.002)  # 60 rows of an entity take longer than an alarm waits
        sent.append(len(receiver.got))
        return real(self, rows, time)

    monkeypatch.setattr(FakeStream, "add", add)
    watch.source.acknowledge = acknowledged.append
    assert watch._take(watch.source.read(1.0))
    assert sent[-1] > 0
    assert watch.store.position["file"]["offset"] == 0  # not beyond the batch
    assert acknowledged == []  # the batch is not kept whole
    watch.checkpoint()
    assert len(acknowledged) == 1
    watch.close()


def test_a_stop_does_not_wait_for_a_long_batch_and_loses_nothing(tmp_path, receiver, monkeypatch):
    lines = feed(n_rows=60, entities=NAMES, faults=((40, 50, 1),))
    write(tmp_path, lines)
    real = FakeStream.add

    def add(self, rows, time=None):
        clock.sleep(0.002)
        return real(self, rows, time)

    monkeypatch.setattr(FakeStream, "add", add)
    monkeypatch.setattr(runner, "_LAST", 0.0)
    monkeypatch.setattr(checkpoint, "_WORK", 0.05)
    watch = made(tmp_path, receiver)
    watch.start()
    watch.stop()
    assert watch.step()
    watch.close()
    taken = watch.status.counts["rows"]
    assert 0 < taken < len(lines)
    again = made(tmp_path, receiver)
    again.run()
    assert taken + again.status.counts["rows"] == len(lines)
    assert sum(one[1] == "open" for one in set(told(receiver))) == len(NAMES)


def test_late_rows_are_late_again_once_newer_ones_have_come(tmp_path, receiver):
    lines = feed(n_rows=40, entities=("p1",), faults=())
    write(tmp_path, lines[:20])
    watch = Watch(config(tmp_path), FakeCore())
    watch.start()
    watch.step()
    watch.close()
    write(tmp_path, [lines[3], lines[20], lines[21], lines[4]], "a")
    again = Watch(config(tmp_path), FakeCore())
    again.start()
    again.step()
    again.close()
    assert (again.status.counts["replayed"], again.status.counts["late"]) == (3, 3)
