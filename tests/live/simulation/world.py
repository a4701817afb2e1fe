"""A world for `vace watch`, made from one seed: rows, a source, a sink, a disk, a clock, a process.

The watch is the real one: loop, alignment, entities, store (SQLite), delivery. Around it everything
is simulated and goes wrong as the seed says. Each call to the clock, the source, the sink or the
database is a "point", which may be the last thing that the process does.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from bisect import bisect_right
from collections import Counter

import numpy as np

from live.fakes import FakeCore, FakeModel
from live.feeds import CHANNELS, START, STEP
from live.simulation.machine import Db, Jobs, Killed, NoThread, SimClock, new_folder, watch_config
from live.simulation.sources import FileSource, LogSource, PushSource, SimSink
from live.simulation.truth import LATE, LEARN, SECOND, BrokenError, check
from vace_ad.live.delivery import Delivery
from vace_ad.live.records import Record
from vace_ad.live.runner import Watch
from vace_ad.live.store import Store

_TROUBLE = 250  # points from one trouble to the next, on average
_LONGEST = 4_000  # turns of a world, after which it is stuck


class World:
    """One seed is one world; `run` raises BrokenError where an invariant does not hold."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        rng = self.rng
        self.clock = SimClock(self)
        self.kind = rng.choice((LogSource, PushSource, FileSource))
        self.learns = rng.random() < 0.15
        self.clock_steps = rng.random() < 0.3
        self.disk_trouble = rng.random() < 0.4
        self.sink_trouble = rng.random() < 0.6
        self.kills = rng.random() < 0.7
        self.lies = self.kind is LogSource and rng.random() < 0.4  # fsync says done and is not
        self.gaps = rng.random() < 0.3  # records that never come, or too late
        self.long = rng.random() < 0.05  # short worlds show most bugs, in a fifth of the time
        self.written, self._half, self._rotations = 0, "", 0  # of a file
        self.wild = True
        self.watch: Watch | None = None
        self._keeper: Store | None = None  # or the last to close would clear up, even if killed
        self.source = None
        self.acknowledged = 0  # records of the log that the source may forget
        self.got: list[dict] = []
        self.false_silences: set[str] = set()
        self._broken: list[str] = []
        self._confirmed: dict[str, int] = {}  # message: commits at that time
        self.n_commits = self.n_deaths = self.n_points = 0
        self._died_at: list[int] = []  # commits before each death
        self._points_left, self._trouble_in = self._life_time(), self._quiet_time()
        self._dead = self._nested = False
        self._full_until = self._stall_until = 0.0
        self.seen: Counter[str] = Counter()
        self._make_rows()

    # ------------------------------------------------------------------ what happens

    def _make_rows(self) -> None:
        rng = self.rng
        numbers = np.random.default_rng(self.seed)
        self.truth: dict[str, np.ndarray] = {}
        arrivals: list[tuple[float, int, Record]] = []
        n = rng.randint(20, 60) if self.long else rng.randint(6, 12)
        n += LEARN if self.learns else 0
        for k in range(rng.choice((1, 1, 2, 3))):
            rows = numbers.normal(size=(n, len(CHANNELS)))
            for _ in range(rng.randint(0, 3)):
                start = rng.randint(LEARN + 2 if self.learns else 0, n - 1)
                rows[start : start + rng.randint(1, 12), rng.randrange(len(CHANNELS))] += 25
            self.truth[f"e{k}"] = rows
            for i, row in enumerate(rows.tolist()):
                cells = dict(zip(CHANNELS, row, strict=True))
                parts = [cells] if rng.random() < 0.7 else [{c: v} for c, v in cells.items()]
                for part in parts:
                    record = Record(
                        f"e{k}", START + i * STEP + rng.choice((0, 0, 3)) * SECOND, part
                    )
                    delay = rng.uniform(0, LATE - 1) if rng.random() < 0.3 else 0.0
                    if self.gaps and rng.random() < 0.05:
                        continue
                    if self.gaps and rng.random() < 0.03:
                        delay = rng.uniform(LATE, 4 * LATE)  # too late, perhaps
                    arrivals.append((i + delay, len(arrivals), record))
                    if rng.random() < 0.1:  # twice
                        arrivals.append((i + delay + rng.uniform(0, 8), len(arrivals), record))
            if rng.random() < 0.3:
                far = Record(f"e{k}", START + 10**6 * STEP, {CHANNELS[0]: 1e9})  # months ahead
                arrivals.append((rng.uniform(0, n), len(arrivals), far))
        arrivals.sort(key=lambda one: one[:2])
        self.log = [record for _, _, record in arrivals]
        self._times = [1000.0 + at * STEP / SECOND for at, _, _ in arrivals]
        self.last = self._times[-1]

    def arrived(self) -> int:
        """How many records of the log have come by now."""
        return bisect_right(self._times, self.clock.seconds)

    def grow(self) -> None:
        """Another program writes what has come by now: whole lines or not, to a new file or not."""
        rng, path = self.rng, self.folder / "feed.jsonl"
        ready = self.arrived()
        while self.written < ready:
            if self.wild and self.n_commits and rng.random() < 0.01 and not self._half:
                self._rotations += 1
                if path.exists():
                    path.rename(self.folder / f"feed.jsonl.{self._rotations}")
                self.seen["rotations"] += 1
            record = self.log[self.written]
            line = {"time": record.time, "entity": record.entity, **record.values}
            text = (json.dumps(line) + "\n")[len(self._half) :]
            whole = not self.wild or self._half or rng.random() < 0.95
            part = text if whole else text[: rng.randint(1, len(text) - 1)]
            with path.open("a") as file:
                file.write(part)
            moment = START + self.written * SECOND
            os.utime(path, ns=(moment, moment))
            if not whole:
                self._half = part
                return
            self._half, self.written = "", self.written + 1

    def _life_time(self) -> int:
        return int(self.rng.expovariate(1 / (500 if self.long else 150))) + 1

    def _quiet_time(self) -> int:
        return int(self.rng.expovariate(1 / _TROUBLE)) + 1

    def point(self) -> None:
        """Somewhere in the process: it may be the last thing it does."""
        if self._dead:
            raise Killed
        self.n_points += 1
        if not self.wild:
            return
        self._points_left -= 1
        if self.kills and self._points_left <= 0 and self.watch is not None:
            self._dead = True
            raise Killed
        if self._nested or self.watch is None:
            return
        self._trouble_in -= 1
        if self._trouble_in <= 0:
            self._trouble_in = self._quiet_time()
            self._trouble()

    def _trouble(self) -> None:
        chance = self.rng.random()
        if chance < 0.5:
            self.deliver()  # its own thread, at any moment
        elif chance < 0.75 and self.clock_steps:
            self.clock.offset += self.rng.choice((-7200, -30, 30, 7200)) * SECOND
            self.seen["clock steps"] += 1
        elif chance < 0.875 and self.disk_trouble:
            self._full_until = self.clock.seconds + self.rng.uniform(0, 20)
            self.seen["disk full"] += 1
        else:
            self._stall_until = self.clock.seconds + self.rng.uniform(0, 60)
            self.seen["stalls"] += 1

    def full(self) -> bool:
        return self.wild and self.clock.seconds < self._full_until

    def stalled(self) -> bool:
        return self.wild and self.clock.seconds < self._stall_until

    def while_waiting(self) -> None:
        watch = self.watch
        if watch is not None and self.full() and watch.status.ready:
            raise BrokenError("ready although nothing can be written")

    # ----------------------------------------------------------------- the process

    def _begin(self) -> None:
        self._dead = False
        self.source = self.kind(self)
        choose = self.rng.choice
        config = watch_config(
            self.folder, self.learns, choose(("100ms", "1s", "30s")), choose((1, 7, 40)),
            choose((1, 100)), choose(("1min", "60min")),
        )  # fmt: skip
        watch = Watch(config, FakeCore(), self.source, self.clock)
        watch.models._worker = Jobs()
        delivery = Delivery("sim", SimSink(self), watch.store, watch.status, self.clock)
        delivery._thread = NoThread(self, delivery)
        watch.deliveries.append(delivery)
        if self._keeper is None:
            self._keeper = watch.store.reopen()
        watch.store._db = Db(self, watch.store._db)
        self.watch = watch  # from here on it can die
        watch.start()

    def _die(self) -> None:
        self.n_deaths += 1
        self._died_at.append(self.n_commits)
        watch, self.watch, self._dead = self.watch, None, False
        for delivery in watch.deliveries:
            if hasattr(delivery._thread, "store"):
                delivery._thread.store._db._db.close()
        watch.store.close()
        if isinstance(self.source, FileSource):
            self.source.close()
        self._points_left = self._life_time()
        if self.lies and self.rng.random() < 0.5:
            self._power_cut()

    def _release(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def _power_cut(self) -> None:
        """Every file goes back to an earlier commit, and the end of what was not synced is torn."""
        kept = sorted(self.folder.glob("copy-*"))
        if not kept:
            return
        self._release()
        back = self.rng.choice(kept)
        for end in ("", "-wal", "-shm"):
            place = self.folder / f"state{end}"
            place.unlink(missing_ok=True)
            if end != "-shm" and (back / f"state{end}").exists():
                shutil.copy(back / f"state{end}", place)
        wal = self.folder / "state-wal"
        if wal.exists() and self.rng.random() < 0.5:
            size = wal.stat().st_size
            with wal.open("r+b") as file:
                file.truncate(max(0, size - self.rng.randint(1, 5000)))
        with_position = Store(self.folder / "state")
        self.acknowledged = (with_position.position or {"at": 0})["at"]  # a topic keeps its past
        with_position.close()
        self.seen["power cuts"] += 1

    def committed(self) -> None:
        self.n_commits += 1
        if self.lies and self.rng.random() < 0.1:
            copy = self.folder / f"copy-{self.n_commits:06d}"
            copy.mkdir()
            for end in ("", "-wal"):
                shutil.copy(self.folder / f"state{end}", copy / f"state{end}")

    def deliver(self) -> None:
        if self._nested:
            return
        self._nested = True
        try:
            for delivery in self.watch.deliveries:
                if hasattr(delivery._thread, "store"):
                    delivery._round(delivery._thread.store)
        finally:
            self._nested = False

    def _breaks(self, words: str) -> None:
        """An invariant does not hold, said where the watch survives any exception."""
        self._broken.append(words)
        raise BrokenError(words)

    def confirm(self, message: str) -> None:
        """The receiver said that it has a message."""
        if message in self._confirmed:
            at = self._confirmed[message]
            if not self.lies and not any(at <= death for death in self._died_at):
                self._breaks(f"{message} was told twice although its receipt was kept")
        self._confirmed[message] = self.n_commits

    def check_acknowledged(self, until: int, *, positions: bool = True) -> None:
        """What the source may forget is in the state, as another process would find it."""
        if self.rng.random() < 0.7:
            self.acknowledged = max(self.acknowledged, until)
            return
        db = sqlite3.connect(self.folder / "state")
        try:
            if positions:
                (text,) = db.execute("select value from meta where key = 'position'").fetchone()
                if f'"at": {until}}}' not in text:
                    self._breaks(f"position {until} was acknowledged, {text} is kept")
            names = {row[0] for row in db.execute("select name from entity")}
        finally:
            db.close()
        missing = {record.entity for record in self.log[self.acknowledged : until]} - names
        if missing:
            self._breaks(f"{missing} were acknowledged and are not in the state")
        self.acknowledged = max(self.acknowledged, until)

    # ------------------------------------------------------------------------- run

    def run(self) -> None:
        self.folder = new_folder()
        FakeModel(CHANNELS, [0.0] * 3, [1.0] * 3).save(self.folder / "model.json")
        try:
            self._run()
            check(self)
        finally:
            if self.watch is not None:
                self._die()
            self._release()
            shutil.rmtree(self.folder)

    def _run(self) -> None:
        for _ in range(_LONGEST):
            if self.clock.seconds > self.last + 20:
                self.wild = False  # everything passes, in the end
            try:
                if self.watch is None:
                    self._begin()
                self._turn()
            except Killed:
                self._die()
                continue
            if not self.wild and self._over():
                return
        problems = self.watch.status.problems if self.watch else None
        raise BrokenError(f"the world does not come to an end: {problems}")

    def _turn(self) -> None:
        watch = self.watch
        watch.step()
        if self.rng.random() < 0.3 or not self.wild:
            self.deliver()
        fits = watch.models._worker
        while not fits._jobs.empty() and (self.rng.random() < 0.2 or not self.wild):
            fits._next()
        if self.wild and self.rng.random() < 0.003:
            self.seen["reloads"] += 1
            watch.close()
            self.watch = None
        if self._broken:
            raise BrokenError(self._broken[0])
        self._check_memory(watch)

    def _check_memory(self, watch: Watch) -> None:
        for entity in watch.entities.values():
            if len(entity.aligner._open) > LATE + 3:
                raise BrokenError(f"{entity.name} keeps {len(entity.aligner._open)} open rows")

    def _over(self) -> bool:
        watch = self.watch
        return (
            self.source.over
            # where the last reading is from the future, the clock stays in doubt until another
            and not watch.status.problems.keys() - {"clock"}
            and not watch.models._fits
            and not watch.store.waiting()
            and not watch._checkpoint.due(eager=False)
        )
