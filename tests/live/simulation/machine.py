"""The machine of a simulated world: its clock, its disk, its threads, and its configuration."""

from __future__ import annotations

import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from live.feeds import START
from live.simulation.truth import LATE, LEARN, SECOND
from vace_ad.live.clock import Clock
from vace_ad.live.config import Config, make_config
from vace_ad.live.delivery import Delivery
from vace_ad.live.models import Worker

if TYPE_CHECKING:
    from live.simulation.world import World

_MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


class Killed(BaseException):
    """The process is gone, from one instruction to the next."""


class SimClock(Clock):
    """Time passes when somebody waits; the wall clock may be set, the other one not."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.seconds, self.offset = 1000.0, 0

    def time_ns(self) -> int:
        self._world.point()
        return self.true_ns() + self.offset

    def true_ns(self) -> int:
        return START + round((self.seconds - 1000.0) * SECOND)

    def monotonic_ns(self) -> int:
        self._world.point()
        return round(self.seconds * SECOND)

    def wait(self, event, seconds):
        self._world.while_waiting()
        self.seconds += seconds
        self._world.point()
        return event.is_set()


class Db:
    """A connection on which every statement is a point, and the disk may be full."""

    def __init__(self, world: World, db: sqlite3.Connection) -> None:
        self._world, self._db = world, db

    def execute(self, sql, *args):
        self._world.point()
        word = sql.split(None, 1)[0]
        if word in ("commit", "insert") and self._world.full():
            raise sqlite3.OperationalError("database or disk is full")
        found = self._db.execute(sql, *args)
        if word == "commit":
            self._world.committed()
        return found

    def executemany(self, sql, rows):
        self._world.point()
        if self._world.full():
            raise sqlite3.OperationalError("disk I/O error")
        return self._db.executemany(sql, rows)

    def __getattr__(self, name):
        return getattr(self._db, name)


class NoThread:
    """Stands in for the thread of a delivery: its rounds are made by the world."""

    def __init__(self, world: World, delivery: Delivery) -> None:
        self._world, self._delivery = world, delivery

    def start(self):
        self.store = self._delivery._store.reopen()
        self.store._db = Db(self._world, self.store._db)

    def join(self, seconds):
        self._delivery._backoff.worked()
        self._world.deliver()  # one round at a time, as in one thread
        self.store.close()
        del self.store

    def is_alive(self):
        return False


class Jobs(Worker):
    """Fits that wait until the world lets them run."""

    def __init__(self) -> None:
        self._jobs = SimpleQueue()


@cache
def _memory() -> tempfile.TemporaryDirectory[str]:
    """A disk in memory, for the worlds of this process."""
    return tempfile.TemporaryDirectory(prefix="worlds-", dir=_MEMORY)


def new_folder() -> Path:
    """An empty folder, of the same name for every world: configurations can be used again."""
    folder = Path(_memory().name) / "world"
    folder.mkdir()
    return folder


@cache
def watch_config(
    folder: Path, learns: bool, checkpoint: str, snapshot_rows: int, active: int, idle: str
) -> Config:
    model = {"learn": f"{10 * LEARN}s"} if learns else {"file": str(folder / "model.json")}
    return make_config(
        {
            "source": {"kind": "jsonl", "path": "unused"},
            "align": {"step": "10s", "lateness": f"{10 * LATE}s", "future": "30d"},
            "model": model,
            "alarms": {"resolve_after": "1min", "silence_after": "10min", "group": "0s"},
            "state": {
                "path": str(folder / "state"), "checkpoint": checkpoint,
                "snapshot_rows": snapshot_rows, "active": active, "idle": idle,
            },
        }
    )  # fmt: skip
