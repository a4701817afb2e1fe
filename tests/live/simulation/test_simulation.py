"""Simulated worlds: 2,000 of them on every run, and those that showed a bug by name."""

from __future__ import annotations

from itertools import count

import pytest

from live.simulation.machine import SimClock
from live.simulation.truth import BrokenError
from live.simulation.world import World
from vace_ad.live.align import Aligner
from vace_ad.live.checkpoint import Checkpoint
from vace_ad.live.delivery import Delivery
from vace_ad.live.runner import Watch
from vace_ad.live.sources.files import _Lines
from vace_ad.live.status import Status
from vace_ad.live.store import Store

FIRST, BLOCK, BLOCKS = 1_000_000, 25, 80


@pytest.mark.parametrize("block", range(BLOCKS))
def test_worlds(block):
    for seed in range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK):
        world = World(seed)
        try:
            world.run()
        except Exception as error:
            error.add_note(f"again: python -m live.simulation --seed {seed}")
            raise


def test_a_model_that_outlives_its_state_is_used():
    """A lying disk lost the state after the training, and kept the model's file."""
    World(1_794_993_484_288).run()


def test_one_seed_is_one_world():
    worlds = [World(1_000_007) for _ in range(2)]
    for world in worlds:
        world.run()
    first, second = worlds
    assert first.got == second.got
    assert (first.n_points, first.n_deaths, first.seen) == (
        second.n_points, second.n_deaths, second.seen,
    )  # fmt: skip


def acknowledge_early(monkeypatch):
    """The position is acknowledged before it is kept."""
    real = Watch.checkpoint

    def checkpoint(self):
        position = self._checkpoint.pending.position
        if position is not None:
            self.source.acknowledge(position)
        real(self)

    monkeypatch.setattr(Watch, "checkpoint", checkpoint)


def forget_the_journal(monkeypatch):
    """Rows since the snapshot are not run through again."""
    monkeypatch.setattr(Store, "journal", lambda self, *args: [])


def forget_receipts(monkeypatch):
    """What was sent stays in the outbox."""
    monkeypatch.setattr(Checkpoint, "sent", lambda self: {})


def drop_on_failure(monkeypatch):
    """A message that was not taken is not sent again."""
    real = Delivery._send

    def send(self, messages):
        done = real(self, messages)
        self.sent = messages[-1].seq
        return done

    monkeypatch.setattr(Delivery, "_send", send)


def forget_open_rows(monkeypatch):
    """Readings that are not in a row yet are lost with the process."""
    monkeypatch.setattr(Aligner, "state", lambda self: {**REAL_STATE(self), "open": []})


def measure_silence_by_the_clock(monkeypatch):
    """A clock that is set forward makes everybody silent."""
    monkeypatch.setattr(SimClock, "monotonic_ns", SimClock.time_ns)


def skip_a_rotated_file(monkeypatch):
    """Of files that were moved away while nobody read, only the newest is read."""
    monkeypatch.setattr(_Lines, "_following", lambda self: self._path)


def lose_commits(monkeypatch):
    """Every third transaction is reported as written and is not."""
    real, calls = Store.commit, count(1)
    monkeypatch.setattr(
        Store, "commit", lambda self, pending: real(self, pending) if next(calls) % 3 else 0
    )


def send_twice(monkeypatch):
    """Every message is delivered a second time."""
    real = Delivery._send
    monkeypatch.setattr(
        Delivery, "_send", lambda self, messages: real(self, messages) and real(self, messages)
    )


def send_the_newest_first(monkeypatch):
    """Messages that go together go in the wrong order."""
    real = Delivery._send

    def send(self, messages):
        bodies = [message.body for message in reversed(messages)]
        pairs = zip(messages, bodies, strict=True)
        return real(self, [message._replace(body=body) for message, body in pairs])

    monkeypatch.setattr(Delivery, "_send", send)


def score_a_row_again(monkeypatch):
    """After a restart the first row since a snapshot runs through its stream a second time."""
    real = Store.journal

    def journal(self, *args):
        rows = real(self, *args)
        return rows[:1] + rows

    monkeypatch.setattr(Store, "journal", journal)


def keep_rows_open(monkeypatch):
    """No row is ever complete."""
    monkeypatch.setattr(Aligner, "_close", lambda self, *args: [])


def always_ready(monkeypatch):
    """Readiness does not depend on the disk."""
    monkeypatch.setattr(Status, "ready", True)


REAL_STATE = Aligner.state
NAMED = {  # bug: the seed of a world that shows it, and how
    acknowledge_early: (1_000_000, "was acknowledged"),
    forget_the_journal: (1_000_005, "is not that of its table"),
    forget_receipts: (1_000_002, "does not come to an end"),
    drop_on_failure: (1_000_035, "was lost"),
    forget_open_rows: (1_000_002, "is not that of its table"),
    measure_silence_by_the_clock: (1_000_078, "nobody was silent"),  # found by the simulation
    skip_a_rotated_file: (1_000_052, "is not that of its table"),  # likewise
    lose_commits: (1_000_000, "was acknowledged"),
    send_twice: (1_000_002, "told twice"),
    send_the_newest_first: (1_000_072, "out of order"),
    score_a_row_again: (1_000_005, "is not that of its table"),
    keep_rows_open: (1_000_001, "open rows"),
    always_ready: (1_000_000, "ready although"),
}


@pytest.mark.parametrize("bug", NAMED, ids=[bug.__name__ for bug in NAMED])
def test_a_bug_shows_in_its_world(bug, monkeypatch):
    """The same worlds without the bug are among those above."""
    bug(monkeypatch)
    seed, words = NAMED[bug]
    with pytest.raises(BrokenError, match=words):
        World(seed).run()
