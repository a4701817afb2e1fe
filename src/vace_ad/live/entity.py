"""One entity: its rows, what it has learned or is learning, its stream and its alarms."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import StateError, VaceError
from vace_ad.live.alarms import ANOMALY, Life, Message
from vace_ad.live.alarms import Rules as AlarmRules
from vace_ad.live.align import Aligner, Row
from vace_ad.live.align import Rule as AlignRule
from vace_ad.live.core import Latest, Model, Rows, Stream, Times
from vace_ad.live.recent import Recent
from vace_ad.live.records import Record
from vace_ad.live.store import JournalRow, Pending, Store

log = logging.getLogger("vace_ad.live")
LEARNING, FITTING, WATCHING = "learning", "fitting", "watching"
ELSEWHERE = "watched elsewhere"  # its partition went to another member of the group
_ACCEPTED = 50  # patterns kept of one entity, the newest ones
BLIND = 2  # times the rows that a first score needs, none of which has one: an alarm
_RETRY = 10  # after a fit that failed, a tenth of the time to learn is added


@dataclass(frozen=True)
class Setup:
    """What all entities share."""

    align: AlignRule
    alarms: AlarmRules
    channels: int = 1000  # at most
    learn: int | None = None  # nanoseconds
    snapshot_rows: int = 256


class Entity:
    """One entity in memory."""

    def __init__(self, name: str, setup: Setup, model: Model | None) -> None:
        self.name, self._setup, self.model = name, setup, model
        self.aligner = Aligner(setup.align)
        self.life = Life(name, setup.alarms)
        self.phase = LEARNING if model is None else WATCHING
        self.channels: list[str] = [] if model is None else list(model.channels)
        self._place = {channel: i for i, channel in enumerate(self.channels)}
        self.n_rows = 0  # rows so far
        self._base = 0  # the row that the stream began with
        self.origin = 0  # its time
        self.seen = 0  # time of the last row
        self.start: int | None = None  # time of the first row that is learned from
        self.learn = setup.learn or 0  # grows after a fit that failed
        self.learned = 0  # rows [0, learned) are learned from
        self.stream: Stream | None = None
        self._looking = threading.Lock()  # held while rows are added, or looked at
        self._kept = -(crc32(name.encode()) % setup.snapshot_rows)  # spread over time
        self.scores = Recent()
        self.newest: dict[str, float] = {}
        self._heard: dict[str, int] = {}  # time of the last row with a reading, by channel
        self._journal: list[JournalRow] = []
        self.accepted: list[tuple[str, Any]] = []  # the alarm and how it looked, called normal
        self._hushed: str | None = None  # the alarm whose event is still going on, called normal
        self.n_accepted = 0  # stretches that looked like something accepted
        self.idle = False  # whether the last row is off or under maintenance
        self._blind = 0  # the last rows, none of which has a score
        self._blind_since = 0  # time of the first of them
        self._again: int | None = None  # after a restart: records up to this time may come again

    # -------------------------------------------------------------------- rows

    def take(
        self, records: Sequence[Record], counts: Counter[str], now: int | None
    ) -> list[Message]:
        """Put records in place and work off the rows that are complete."""
        rows: list[Row] = []
        for record in records:
            values = {
                channel: value
                for channel, value in record.values.items()
                if channel in self._place or self._meet(channel, counts)
            }
            if values or not record.values:
                rows += self._place_in(record._replace(values=values), counts, now)
        return self._work(rows, counts) if rows else []

    def _place_in(self, record: Record, counts: Counter[str], now: int | None) -> list[Row]:
        if self._again is None:
            return self.aligner.add(record, counts, now)
        own: Counter[str] = Counter()
        rows = self.aligner.add(record, own, now)
        own["replayed"] = own.pop("late", 0) + own.pop("twice", 0)
        counts.update(own)
        if record.time > self._again:
            self._again = None
        return rows

    def expect_again(self) -> None:
        """A restart: the source may give once more what was taken; it is dropped, and counted so.

        Until a newer record comes.
        """
        self._again = self.aligner.newest

    def finish(self, counts: Counter[str]) -> list[Message]:
        """The series ends here: close all rows, and let the stream say the rest."""
        messages = self._work(self.aligner.finish(), counts)
        if self.stream is not None:
            messages += self.life.changes(self.stream.finish().changes, self.seen, self.origin)
            self.stream, self._base = None, self.n_rows  # what comes later is another series
        return messages

    def _meet(self, channel: str, counts: Counter[str]) -> bool:
        """A channel that is new: part of what is learned, or not known to the model."""
        if self.phase != LEARNING:
            counts["unknown_channel"] += 1
            return False
        if len(self.channels) >= self._setup.channels:
            counts["too_many_channels"] += 1
            return False
        self._place[channel] = len(self.channels)
        self.channels.append(channel)
        return True

    def _work(self, rows: Sequence[Row], counts: Counter[str]) -> list[Message]:
        """Work off rows; alarms do not depend on how many come together."""
        messages: list[Message] = []
        at = 0
        while at < len(rows):
            n = len(rows) - at if self._many else 1
            messages += self._block(rows[at : at + n], counts)
            at += n
        counts["rows"] += len(rows)
        counts["accepted"] += self.n_accepted
        self.n_accepted = 0
        return messages

    @property
    def _many(self) -> bool:
        """Whether rows that wait can be scored at once: a tenth of the time a row, and less."""
        return self.phase == WATCHING and getattr(self.stream, "tells_rows", False)

    def _block(self, rows: Sequence[Row], counts: Counter[str]) -> list[Message]:
        """Rows that are scored together; what comes of them is told row by row."""
        cells = np.full((len(rows), len(self.channels)), np.nan)  # (n, n_channels)
        for i, row in enumerate(rows):
            for channel, value in row.values.items():
                cells[i, self._place[channel]] = value
        first, changes = self.n_rows, None
        if self.phase == WATCHING:
            changes, scored = self._score(cells, [row.time for row in rows], first)
            counts["unscored"] += scored.count(False)
        messages: list[Message] = []
        for i, row in enumerate(rows):
            line = JournalRow(self.name, self.n_rows, row.time, cells[i].tobytes())
            self._journal.append(line)
            self.n_rows += 1
            self.seen, self.newest = row.time, row.values
            messages += self.life.heard(row.time)
            messages += self._sensors(row)
            if changes is not None:
                self._count_accepted(changes[i])
                messages += self.life.changes(changes[i], row.time, self.origin)
                messages += self._watched(scored[i], row.time)
                continue
            self.start = row.time if self.start is None else self.start
            if self.phase == LEARNING and row.time - self.start >= self.learn:
                self.phase, self.learned = FITTING, self.n_rows
        return messages

    def _watched(self, scored: bool, time: int) -> list[Message]:
        """Whether rows have scores: where none of many has, that is an alarm of its own."""
        if scored:
            self._blind = 0
            return self.life.scored(time)
        self._blind_since = self._blind_since if self._blind else time
        self._blind += 1
        assert self.model is not None
        if self._blind < BLIND * self.model.reach or self.stream is None:
            return []
        reason = self.stream.trouble or (
            f"too many channels are missing, or rows come in stretches of fewer than "
            f"{self.model.reach} rows; look at what the source sends"
        )
        return self.life.silent(self._blind_since, time, reason=reason)

    def _score(
        self, cells: Rows, times: Sequence[int], number: int
    ) -> tuple[list[list[Any]], list[bool]]:
        """What rows change, row by row, and whether they have a score; `number`: of the first."""
        if self.stream is None:
            assert self.model is not None
            self.stream, self._base, self.origin = self.model.stream(), number, times[0]
            if self.accepted:
                self.model.accept(self.stream, self.accepted)
        with self._looking:
            added = self.stream.add(cells, np.array(times, "datetime64[ns]"))
        self.scores.extend(times, added.provisional.tolist())
        scored = (~np.isnan(added.provisional) | added.idle).tolist()  # idle rows need no score
        self.idle = bool(added.idle[-1])
        if len(times) == 1:
            return [list(added.changes)], scored
        changes: list[list[Any]] = [[] for _ in times]
        for change in added.changes:
            row = change.row - (number - self._base)  # before these where rows waited
            changes[max(row, 0)].append(change)
        return changes, scored

    def latest(self, n: int) -> Latest | None:
        """The last n rows with what was expected, for those who look from another thread."""
        with self._looking:
            return None if self.stream is None else self.stream.latest(n)

    def _count_accepted(self, changes: Sequence[Any]) -> None:
        """Stretches like an accepted one; the end of one that was called normal as it went on."""
        for change in changes:
            if change.what != "accepted":
                continue
            self.n_accepted += 1
            if change.pattern is not None and self._hushed is not None:
                self._learn(self._hushed, [change.pattern.to_plain()])
                self._hushed = None

    def call_normal(self, alarm: str, patterns: Sequence[Any]) -> list[Message]:
        """A person says that an alarm was normal: what looks like it alarms no more."""
        if any(name == alarm for name, _ in self.accepted):
            return []
        running = self.life.open.get((ANOMALY, ""))
        going_on = running is not None and running.id == alarm
        if running is not None and going_on:
            patterns = running.patterns
            self._hushed = alarm if running.events else None
        messages = self.life.normal(alarm, self.seen)
        self._learn(alarm, patterns, hush=self._hushed == alarm)
        return messages

    def call_back(self, alarm: str) -> None:
        """A person takes that back."""
        self.accepted = [(name, one) for name, one in self.accepted if name != alarm]
        self._hushed = None if self._hushed == alarm else self._hushed
        self._learn(alarm, [])

    def call_fault(self, alarm: str, stretch: tuple[int, int] | None) -> None:
        """A person says that an alarm was a fault, from its begin to its end; None takes it back.

        It is kept beside the model: its rows never become normal.
        """
        if self.model is None:
            return
        try:
            self.model.call_fault(alarm, self.name, stretch)
        except VaceError as error:
            log.warning("%s: alarm %s: the verdict is not kept: %s", ascii(self.name), alarm, error)

    def _learn(self, alarm: str, patterns: Sequence[Any], *, hush: bool = False) -> None:
        self.accepted = [*self.accepted, *((alarm, one) for one in patterns)][-_ACCEPTED:]
        if self.stream is not None and self.model is not None:
            self.model.accept(self.stream, self.accepted, hush=hush)
            self._kept = min(self._kept, self.n_rows - 1)  # the snapshot does not know of it

    def _sensors(self, row: Row) -> list[Message]:
        """Silence of single sensors, by the time of the rows."""
        after = self._setup.alarms.silence_after
        if after is None:
            return []
        messages = []
        for channel in row.read:
            self._heard[channel] = row.time
            if self.life.open:
                messages += self.life.heard(row.time, channel)
        if (
            0 < len(row.read) < len(self._heard) and not self.idle
        ):  # an empty row is the entity's silence, not theirs
            for channel, time in self._heard.items():
                if row.time - time >= after:
                    messages += self.life.silent(time, row.time, channel)
        return messages

    # ---------------------------------------------------------------- learning

    @property
    def progress(self) -> float:
        """How much of the time to learn has passed, 0 to 1."""
        if self.phase != LEARNING:
            return 1.0
        if self.start is None or not self.learn:
            return 0.0
        return min(1.0, (self.seen - self.start) / self.learn)

    @property
    def words(self) -> str:
        """What the entity is doing."""
        if self.phase == LEARNING:
            return f"learning, {self.progress:.0%}"
        return "off" if self.idle and self.phase == WATCHING else self.phase

    def training(self, store: Store) -> tuple[Rows, Times]:
        """The rows to learn from."""
        return _matrix(store.journal(self.name, 0, self.learned), len(self.channels))

    def begin(self, model: Model, store: Store) -> list[Message]:
        """Watch with what was learned, from the first row that was not learned from."""
        self.model, self.phase = model, WATCHING
        self.channels = list(model.channels)
        self._place = {channel: i for i, channel in enumerate(self.channels)}
        cells, times = _matrix(store.journal(self.name, self.learned), len(self.channels))
        messages = []
        for i, time in enumerate(times.astype(np.int64).tolist()):
            (changes,), (scored,) = self._score(cells[i : i + 1], [time], self.learned + i)
            self._count_accepted(changes)
            messages += self.life.changes(changes, time, self.origin)
            messages += self._watched(scored, time)
        return messages

    def learn_longer(self) -> None:
        """What came was not enough to learn from."""
        self.phase = LEARNING
        self.learn += max(1, (self._setup.learn or 0) // _RETRY)

    # ------------------------------------------------------------------- state

    def keep(self, pending: Pending, snapshot: bool | None = None) -> None:
        """Add what has changed to a transaction; `snapshot` forces or forbids the stream's."""
        pending.journal += self._journal
        self._journal = []
        small = json.dumps(
            {
                "aligner": self.aligner.state(), "life": self.life.state(), "phase": self.phase,
                "channels": None if self._setup.learn is None else self.channels,
                "n_rows": self.n_rows, "base": self._base, "origin": self.origin,
                "seen": self.seen, "start": self.start, "learn": self.learn,
                "learned": self.learned, "running": self.stream is not None,
                "heard": self._heard, "accepted": self.accepted, "hushed": self._hushed,
                "blind": [self._blind, self._blind_since],
            }
        )  # fmt: skip
        pending.entities[self.name] = (self.seen, self.words, small)
        due = (
            self.n_rows - self._kept >= self._setup.snapshot_rows if snapshot is None else snapshot
        )
        if due and self.stream is not None and self.model is not None and self.n_rows > self._kept:
            state = self.stream.to_bytes()
            pending.snapshots[self.name] = (self.n_rows, self.model.identity, state)
            self._kept = self.n_rows
        elif self.stream is None and self.phase == WATCHING:
            pending.forgotten[self.name] = self.n_rows

    @property
    def due(self) -> bool:
        """Whether a snapshot of the stream is due."""
        return self.n_rows - self._kept >= self._setup.snapshot_rows and self.stream is not None

    @classmethod
    def restored(
        cls, name: str, setup: Setup, model: Model | None, small: dict[str, Any], store: Store
    ) -> Entity:
        """The entity as it was at the last commit; rows since the snapshot run through again."""
        entity = cls(name, setup, model)
        entity.aligner = Aligner.restored(small["aligner"], setup.align)
        entity.life.restore(small["life"])
        entity.phase = small["phase"]
        if small["channels"] is not None:
            entity.channels = small["channels"]
            entity._place = {channel: i for i, channel in enumerate(entity.channels)}
        entity.n_rows, entity._base, entity.origin = small["n_rows"], small["base"], small["origin"]
        entity.seen, entity.start, entity.learn = small["seen"], small["start"], small["learn"]
        entity.learned, entity._heard = small["learned"], small["heard"]
        entity.accepted = [(name, one) for name, one in small.get("accepted", [])]
        entity._hushed = small.get("hushed")
        entity._blind, entity._blind_since = small.get("blind", (0, 0))
        if small["running"] and model is not None:
            entity._restore_stream(model, store)
        return entity

    def _restore_stream(self, model: Model, store: Store) -> None:
        kept = store.snapshot(self.name)
        start = self._base
        if kept is not None and kept[0] > self._base:
            if kept[1] != model.identity:
                raise StateError(
                    f"the state of {self.name!r} belongs to another model ({kept[1]}, not "
                    f"{model.identity}); take that model, or start with another [state] path"
                )
            start, self.stream = kept[0], model.restore(kept[2])
            self._kept = start
        else:
            self.stream = model.stream()
        cells, times = _matrix(store.journal(self.name, start, self.n_rows), len(self.channels))
        if len(cells):
            added = self.stream.add(cells, times)  # its alarms were kept with these rows
            self._count_accepted(added.changes)
            self.scores.extend(times.astype(np.int64).tolist(), added.provisional.tolist())
        if self.accepted:
            model.accept(self.stream, self.accepted)


def _matrix(rows: Sequence[tuple[int, int, bytes]], n_channels: int) -> tuple[Rows, Times]:
    """Rows of the journal as a matrix; channels that were not known then are empty."""
    cells: NDArray[np.float64] = np.full((len(rows), n_channels), np.nan)
    for i, (_, _, blob) in enumerate(rows):
        known = np.frombuffer(blob)
        cells[i, : len(known)] = known
    return cells, np.array([time for _, time, _ in rows], "datetime64[ns]")
