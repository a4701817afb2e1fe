"""Simulated worlds: two hundred of them on every run, and those that showed a bug by name."""

from __future__ import annotations

import pytest

from live.simulation.world import BrokenError, SimClock, World
from vace_ad.live.align import Aligner
from vace_ad.live.checkpoint import Checkpoint
from vace_ad.live.delivery import Delivery
from vace_ad.live.runner import Watch
from vace_ad.live.sources.files import _Lines
from vace_ad.live.store import Store

FIRST, BLOCK, BLOCKS = 1_000_000, 10, 20


@pytest.mark.parametrize("block", range(BLOCKS))
def test_worlds(block):
    for seed in range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK):
        world = World(seed)
        try:
            world.run()
        except Exception as error:
            error.add_note(f"again: python -m live.simulation --seed {seed}")
            raise


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


REAL_STATE = Aligner.state
NAMED = {
    acknowledge_early: 1_000_001,
    forget_the_journal: 1_000_001,
    forget_receipts: 1_000_000,
    drop_on_failure: 1_000_002,
    forget_open_rows: 1_000_000,
    measure_silence_by_the_clock: 1_000_014,  # found by the simulation
    skip_a_rotated_file: 1_000_031,  # likewise
}


@pytest.mark.parametrize(("bug", "seed"), NAMED.items(), ids=[bug.__name__ for bug in NAMED])
def test_a_bug_shows_in_its_world(bug, seed, monkeypatch):
    """The same worlds without the bug are among those above."""
    bug(monkeypatch)
    with pytest.raises(BrokenError):
        World(seed).run()
