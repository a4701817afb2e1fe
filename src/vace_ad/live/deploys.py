"""Deploys: times after which levels may change, from a file, an HTTP call or a reading."""

from __future__ import annotations

import json
import logging
import math
import threading
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from vace_ad.live.align import Row
from vace_ad.live.records import BadRecordError, Record, read_name, read_time
from vace_ad.live.sections import DeploySettings

log = logging.getLogger("vace_ad.live")
EVERYONE = ""  # the entity of a deploy that concerns all
_KEPT = 1000  # deploys, the newest ones
_ROWS = 20  # a snapshot makes older ones needless
_LONGEST = 1_000_000  # bytes of the file that are read at once
_SETTLING = ("last", "version", "until", "rows")  # what a checkpoint keeps of an entity's deploys
_time = itemgetter(0)  # of a deploy


class Deploys:
    """Deploys by time, of one entity or of all; other threads may add to them."""

    def __init__(self, settings: DeploySettings, state: str | None = None) -> None:
        """`state` is what `state()` gave."""
        self.settle: int = settings.settle
        self.channel = settings.channel
        self._file = settings.file
        kept: dict[str, Any] = {"marks": [], "read": 0} if state is None else json.loads(state)
        self._marks: list[tuple[int, str]] = sorted((int(t), str(e)) for t, e in kept["marks"])
        self._read = int(kept["read"])  # bytes of the file that have been read
        self._lock = threading.Lock()
        self.changed = False  # since the last `state`

    def add(self, time: int, entity: str = EVERYONE) -> None:
        """A deploy at a time in nanoseconds; the same one twice is one."""
        with self._lock:
            if (time, entity) not in self._marks:
                insort(self._marks, (time, entity))
                del self._marks[:-_KEPT]
                self.changed = True

    def newest(self, entity: str, after: int, until: int) -> int | None:
        """The time of the last deploy of an entity in (after, until]."""
        with self._lock:
            low, high = (bisect_right(self._marks, t, key=_time) for t in (after, until))
            found = [t for t, name in self._marks[low:high] if name in (entity, EVERYONE)]
        return found[-1] if found else None

    def next(self, entity: str, after: int) -> int | None:
        """The time of the first deploy of an entity after a time."""
        with self._lock:
            low = bisect_right(self._marks, after, key=_time)
            return next((t for t, name in self._marks[low:] if name in (entity, EVERYONE)), None)

    def read_file(self) -> list[str]:
        """Take what was appended to the file; what could not be read, in words."""
        if self._file is None:
            return []
        try:
            with open(self._file, "rb") as file:
                size = file.seek(0, 2)
                self._read = 0 if size < self._read else self._read  # another file of this name
                file.seek(self._read)
                text = file.read(_LONGEST)
        except FileNotFoundError:
            return []
        except OSError as error:
            return [f"deploys.file {self._file} cannot be read: {error.strerror}"]
        whole = text[: text.rfind(b"\n") + 1]  # a line is complete with its end
        if not whole:
            return []
        self._read += len(whole)
        self.changed = True
        return self._take(whole.decode("utf-8", "replace").splitlines())

    def _take(self, lines: Sequence[str]) -> list[str]:
        wrong = []
        for line in lines:
            when, _, rest = line.partition(",")
            if not when.strip() or when.strip().lower() == "time":
                continue
            entity = rest.partition(",")[0].strip()
            try:
                self.add(read_time(when), read_name(entity, "an entity") if entity else EVERYONE)
            except BadRecordError as error:
                wrong.append(f"deploys.file: a line is left out, {error}; write time,entity")
        return wrong

    def state(self) -> str:
        """All deploys, for the store."""
        with self._lock:
            self.changed = False
            return json.dumps({"marks": self._marks, "read": self._read})


class Settling:
    """The deploys of one entity: no alarm opens while one settles, then its level is normal."""

    def __init__(self, entity: str, deploys: Deploys) -> None:
        self._entity, self._deploys = entity, deploys
        self.channel = deploys.channel
        self.last = 0  # time of the last deploy that was applied
        self.version: float | None = None  # the last reading whose change is a deploy
        self.until: int | None = None  # when it has settled; None: nothing settles
        self.rows: list[int] = []  # the last rows from which a new level was normal

    def note(self, record: Record) -> None:
        """A deploy where the reading that stands for it changes."""
        value = None if self.channel is None else record.values.get(self.channel)
        if value is None or math.isnan(value):
            return
        if self.version is not None and value != self.version:
            self._deploys.add(record.time, self._entity)
        self.version = value

    def has_settled(self, now: int, origin: int) -> bool:
        """Note deploys before the row of this time; True once, when the newest one has settled.

        `origin` is the time of the stream's first row: earlier deploys are over.
        """
        deploy = self._deploys.newest(self._entity, self.last, now)
        if deploy is not None:
            self.last = deploy
            if deploy + self._deploys.settle > origin:
                self.until = deploy + self._deploys.settle
                log.info("%s: a deploy, no new alarm until it has settled", ascii(self._entity))
        if self.until is None or now < self.until:
            return False
        self.until = None
        return True

    def settled(self, row: int) -> None:
        """The level is normal from a row on."""
        self.rows = [*self.rows, row][-_ROWS:]

    def rows_before_next(self, rows: Sequence[Row]) -> int:
        """How many of these rows, at least one, come before something settles or is deployed."""
        edges = (self.until, self._deploys.next(self._entity, max(rows[0].time, self.last)))
        edge = min((time for time in edges if time is not None), default=None)
        return len(rows) if edge is None else max(1, sum(row.time < edge for row in rows))

    def state(self) -> dict[str, Any]:
        """Plain values for the store."""
        return {name: getattr(self, name) for name in _SETTLING}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The reverse of `state`; that of an earlier release is empty."""
        for name in state:
            setattr(self, name, state[name])
