"""The sources and the sink of a simulated world, which fail as its seed says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vace_ad.live.sources import Batch, Source
from vace_ad.live.sources.files import JsonLinesSource
from vace_ad.live.sources.push import FullError, HttpSource

if TYPE_CHECKING:
    from live.simulation.world import World

_JUMPS = (5.0, 15.0, 40.0)  # seconds that pass until a source answers


class LogSource(Source):
    """A source that keeps its records, such as a file or a topic: positions are places in it."""

    def __init__(self, world: World) -> None:
        super().__init__(self.SETTINGS())
        self._world, self._at = world, 0

    def open(self, position):
        self._at = 0 if position is None else position["at"]
        self._world.acknowledged = max(self._world.acknowledged, self._at)

    def read(self, timeout):
        world = self._world
        world.point()
        world.clock.seconds += world.rng.choice((timeout, *_JUMPS))
        if world.stalled():
            self.problem = "no connection"
            return None
        if self.problem:
            self.problem, self._at = None, world.acknowledged  # a reconnect begins there again
        ready = world.arrived()
        if self._at >= ready:
            return None
        n = world.rng.randint(1, 40)
        records = world.log[self._at : min(ready, self._at + n)]
        self._at += len(records)
        return Batch(list(records), {"at": self._at})

    def acknowledge(self, position):
        self._world.point()
        self._world.check_acknowledged(position["at"])

    def close(self):
        pass

    @property
    def over(self):
        return self._world.acknowledged >= len(self._world.log)


class PushSource(HttpSource):
    """The source of HTTP push, and the program that sends: again, until it is answered."""

    def __init__(self, world: World) -> None:
        super().__init__(self.SETTINGS(pending=60))
        self._world, self._next = world, world.acknowledged

    def read(self, timeout):
        world = self._world
        world.point()
        world.clock.seconds += world.rng.choice((timeout, *_JUMPS))
        if world.rng.random() < 0.05:
            self._next = world.acknowledged  # no answer in time: sent again
        ready = world.arrived()
        while self._next < ready and not world.stalled() and world.rng.random() < 0.8:
            end = min(ready, self._next + world.rng.randint(1, 30))
            try:
                answer = self.push(world.log[self._next : end])
            except FullError:
                break
            answer.add_done_callback(partial(self._answered, end))
            self._next = end
        return super().read(0.0)

    def _answered(self, end, answer):
        if answer.exception() is None:
            self._world.check_acknowledged(end, positions=False)

    @property
    def over(self):
        return self._world.acknowledged >= len(self._world.log)


class FileSource(JsonLinesSource):
    """The source of growing files, and the program that writes them and moves them away."""

    def __init__(self, world: World) -> None:
        super().__init__(self.SETTINGS(path=world.folder / "feed.jsonl"))
        self._world, self._quiet = world, 0

    def read(self, timeout):
        world = self._world
        world.point()
        world.clock.seconds += world.rng.choice((timeout, *_JUMPS))
        world.grow()
        batch = None if world.stalled() else super().read(0.0)
        self._quiet = self._quiet + 1 if batch is None and not world.stalled() else 0
        return batch

    @property
    def over(self):
        return self._world.written == len(self._world.log) and self._quiet > 1


class SimSink:
    """A receiver that hangs, refuses, or takes a message and does not say so."""

    repeat, repeat_acknowledged = None, False

    def __init__(self, world: World) -> None:
        self._world = world

    def send(self, messages):
        world = self._world
        world.point()
        trouble = world.rng.random() if world.wild and world.sink_trouble else 1.0
        if trouble < 0.15:
            raise OSError("connection refused")
        if trouble < 0.2:
            world.clock.seconds += 4
            raise TimeoutError("no answer")
        for message in messages:
            world.got.append(message)
            if message["kind"] == "no data" and world.clock.seconds < world.last + 550:
                world.false_silences.add(message["alarm"])
        world.point()  # taken, and perhaps nobody hears of it
        if trouble < 0.3:
            raise OSError("connection reset")
        for message in messages:
            world.confirm(message["id"])

    def close(self):
        pass
