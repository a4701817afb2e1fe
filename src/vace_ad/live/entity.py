"""One entity: its rows, its model or what it trains on, its stream and its alarms."""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from vace_ad.live.alarms import NO_SCORE, Lifecycle, Message
from vace_ad.live.align import Aligner, Row
from vace_ad.live.config import Config
from vace_ad.live.database import JournalRow
from vace_ad.live.deploys import Deploys, Settling
from vace_ad.live.detector import LiveModel, Rows, ScoreHistory, journal_matrix
from vace_ad.live.records import Record
from vace_ad.live.sinks import Scored
from vace_ad.live.store import Store

if TYPE_CHECKING:
    from vace_ad.alarms.recent import Latest
    from vace_ad.stream import Stream

log = logging.getLogger("vace_ad.live")
RowListener = Callable[["Entity", Scored], None]  # is called with all rows that were scored
LEARNING, FITTING, WATCHING = "learning", "fitting", "watching"
ELSEWHERE = "watched elsewhere"  # its partition moved to another member of the group
_ACCEPTED = 50  # patterns kept of one entity, the newest ones
BLIND = 2  # times the rows that a score needs, all without one: an alarm
_BLOCK = 512  # rows scored together: a stream can tell the expected ranges of so many
WARM = 4  # times the rows that a score needs, which a newer model sees before it judges
_RETRY = 10  # after a fit that failed, a tenth of the training time is added


class Entity:
    """One entity in memory."""

    def __init__(
        self,
        name: str,
        config: Config,
        model: LiveModel | None,
        listener: RowListener | None = None,
        deploys: Deploys | None = None,
    ) -> None:
        self.name, self._config, self.model, self._listener = name, config, model, listener
        self._settling = Settling(name, deploys or Deploys(config.deploys))
        self.aligner = Aligner(config.align)
        self.life = Lifecycle(name, config.alarms)
        self.phase = LEARNING if model is None else WATCHING
        self._set_channels([] if model is None else model.channels)
        self.n_rows = self._base = 0  # rows so far; the row that the stream began with
        self.origin = self.seen = 0  # time of that row; time of the last row
        self.start: int | None = None  # time of the first row that is trained on
        self.learn = config.model.learn or 0  # grows after a fit that failed
        self.learned = 0  # rows [0, learned) are trained on
        self.stream: Stream | None = None
        self._stream_lock = threading.Lock()  # held while rows are added, or read by another thread
        self._kept = -(crc32(name.encode()) % config.state.snapshot_rows)  # spread over time
        self.scores = ScoreHistory()
        self.newest: dict[str, float] = {}
        self._heard: dict[str, int] = {}  # time of the last row with a reading, by channel
        self._journal: list[JournalRow] = []
        self.accepted: list[tuple[str, Any]] = []  # alarms called normal, and their patterns
        self._suppressed: str | None = None  # an alarm called normal while its event is open
        self.n_accepted = 0  # events that matched an accepted pattern
        self.trained = 0  # time of the row at which a model was last trained, or of the first row
        self.model_words = ""  # what became of the last retraining
        self.idle = False  # whether the last row is off or under maintenance
        self._unscored = [0, 0]  # last rows without a score: how many, time of the first
        self._replay_until: int | None = None  # after a restart, older records may come again

    def _set_channels(self, channels: Sequence[str]) -> None:
        self.channels = list(channels)
        self._place = {channel: i for i, channel in enumerate(self.channels)}

    # -------------------------------------------------------------------- rows

    def take(
        self, records: Sequence[Record], counts: Counter[str], now: int | None
    ) -> list[Message]:
        """Align records and process the rows that are complete."""
        rows: list[Row] = []
        for record in records:
            self._settling.note(record)
            values = {
                channel: value
                for channel, value in record.values.items()
                if channel != self._settling.channel
                and (channel in self._place or self._use_channel(channel, counts))
            }
            if values or not record.values:
                rows += self._align(record._replace(values=values), counts, now)
        return self._work(rows, counts) if rows else []

    def _align(self, record: Record, counts: Counter[str], now: int | None) -> list[Row]:
        if self._replay_until is None:
            return self.aligner.add(record, counts, now)
        own: Counter[str] = Counter()
        rows = self.aligner.add(record, own, now)
        own["replayed"] = own.pop("late", 0) + own.pop("twice", 0)
        counts.update(own)
        if record.time > self._replay_until:
            self._replay_until = None
        return rows

    def expect_replay(self) -> None:
        """After a restart: count records that the source sends again, until a newer one comes."""
        self._replay_until = self.aligner.newest

    def finish(self, counts: Counter[str]) -> list[Message]:
        """The series ends here: close all rows and finish the stream."""
        messages = self._work(self.aligner.finish(), counts)
        if self.stream is not None:
            messages += self.life.changes(self.stream.finish().changes, self.seen, self.origin)
            self.stream, self._base = None, self.n_rows  # later rows are another series
        return messages

    def _use_channel(self, channel: str, counts: Counter[str]) -> bool:
        """Whether to use a new channel: only while training rows are collected."""
        if self.phase != LEARNING:
            counts["unknown_channel"] += 1
            return False
        if len(self.channels) >= self._config.limits.channels:
            counts["too_many_channels"] += 1
            return False
        self._place[channel] = len(self.channels)
        self.channels.append(channel)
        return True

    def _work(self, rows: Sequence[Row], counts: Counter[str]) -> list[Message]:
        """Process rows; alarms do not depend on how many come together."""
        messages: list[Message] = []
        at = 0
        while at < len(rows):
            # scored together, rows take a tenth of the time or less
            blocks = self.phase == WATCHING and self.stream is not None and self.stream.tells_rows
            n = self._apply_deploys(rows[at : at + _BLOCK if blocks else at + 1])
            messages += self._block(rows[at : at + n], counts)
            at += n
        counts["rows"] += len(rows)
        counts["accepted"] += self.n_accepted
        self.n_accepted = 0
        return messages

    def _apply_deploys(self, rows: Sequence[Row]) -> int:
        """Accept the new level after a deploy; returns the number of rows before the next one."""
        if self.stream is None:
            return len(rows)
        if self._settling.has_settled(rows[0].time, self.origin):
            with self._stream_lock:
                self.stream.judge_afresh(new_level=True)
            self._settling.settled(self.n_rows)
            self.life.detach_events(rows[0].time)
        return self._settling.rows_before_next(rows)

    def _block(self, rows: Sequence[Row], counts: Counter[str]) -> list[Message]:
        """Score rows together; alarms are reported row by row."""
        cells = np.full((len(rows), len(self.channels)), np.nan)  # (n, n_channels)
        for i, row in enumerate(rows):
            for channel, value in row.values.items():
                cells[i, self._place[channel]] = value
        first, changes = self.n_rows, None
        if self.phase == WATCHING:
            changes, scores, idle = self._score(cells, [row.time for row in rows], first)
            counts["unscored"] += int((np.isnan(scores) & ~np.array(idle)).sum())
        messages: list[Message] = []
        alarming: list[bool] = []
        for i, row in enumerate(rows):
            self._journal.append(JournalRow(self.name, self.n_rows, row.time, cells[i].tobytes()))
            self.n_rows += 1
            self.seen, self.newest = row.time, row.values
            messages += self.life.heard(row.time)
            off = changes is not None and idle[i]
            messages += self.life.channels(row.time, row.read, self._heard, off=off)
            if changes is not None:
                self.trained = self.trained or row.time
                messages += self._scored(changes[i], scores[i], off, row.time)
                alarming.append(self.life.anomaly is not None)
                continue
            self.start = row.time if self.start is None else self.start
            if self.phase == LEARNING and row.time - self.start >= self.learn:
                self.phase, self.learned, self.trained = FITTING, self.n_rows, row.time
        if changes is not None and self._listener is not None:
            times, channels = [row.time for row in rows], tuple(self.channels)
            self._listener(self, Scored(self.name, channels, times, cells, scores, alarming))
        return messages

    def _scored(self, changes: Sequence[Any], score: float, idle: bool, time: int) -> list[Message]:
        """What a scored row changes in the alarms."""
        self._count_accepted(changes)
        settling = self._settling.until is not None
        messages = self.life.changes(changes, time, self.origin, settling=settling)
        return messages + self._check_score(score, idle, time)

    def _check_score(self, score: float, idle: bool, time: int) -> list[Message]:
        """Raise an alarm when none of many rows has a score though they should."""
        if idle or not math.isnan(score):
            self._unscored = [0, 0]
            return self.life.heard(time, kind=NO_SCORE)
        rows, since = self._unscored
        self._unscored = [rows + 1, since if rows else time]
        assert self.model is not None
        if self._unscored[0] < BLIND * self.model.reach or self.stream is None:
            return []
        reason = self.stream.trouble or (
            f"too many channels are missing, or rows come in stretches of fewer than "
            f"{self.model.reach} rows; check what the source sends"
        )
        return self.life.silent(self._unscored[1], time, reason=reason)

    def _score(
        self, cells: Rows, times: Sequence[int], number: int
    ) -> tuple[list[list[Any]], list[float], list[bool]]:
        """Changes and scores by row, NaN for none, and whether the row is idle and needs none.

        `number` is that of the first row.
        """
        if self.stream is None:
            assert self.model is not None
            self.stream, self._base, self.origin = self.model.stream(), number, times[0]
            if self.accepted:
                self.model.accept(self.stream, self.accepted)
        with self._stream_lock:
            added = self.stream.add(cells, np.array(times, "datetime64[ns]"))
        scores: list[float] = added.provisional.tolist()
        self.scores.extend(times, scores)
        idle: list[bool] = added.idle.tolist()
        self.idle = idle[-1]
        if len(times) == 1:
            return [list(added.changes)], scores, idle
        changes: list[list[Any]] = [[] for _ in times]
        for change in added.changes:
            changes[(change.row or 0) - (number - self._base)].append(change)
        return changes, scores, idle

    def latest(self, n: int) -> Latest | None:
        """The last n rows with their expected ranges; may be called from another thread."""
        with self._stream_lock:
            return None if self.stream is None else self.stream.latest(n)

    def _count_accepted(self, changes: Sequence[Any]) -> None:
        """Count events like accepted ones; learn the pattern of one accepted while it was open."""
        for change in (one for one in changes if one.what == "accepted"):
            self.n_accepted += 1
            if change.pattern is not None and self._suppressed is not None:
                self._learn(self._suppressed, [change.pattern.to_plain()])
                self._suppressed = None

    def mark_normal(self, alarm: str, patterns: Sequence[Any]) -> list[Message]:
        """Apply the verdict "normal": suppress alarms that match this one."""
        if any(name == alarm for name, _ in self.accepted):
            return []
        running = self.life.anomaly
        if running is not None and running.id == alarm:
            patterns = running.patterns
            self._suppressed = alarm if running.events else None
        messages = self.life.normal(alarm, self.seen)
        self._learn(alarm, patterns, suppress=self._suppressed == alarm)
        return messages

    def undo_normal(self, alarm: str) -> None:
        """Take the verdict "normal" back."""
        self.accepted = [(name, one) for name, one in self.accepted if name != alarm]
        self._suppressed = None if self._suppressed == alarm else self._suppressed
        self._learn(alarm, [])

    def _learn(self, alarm: str, patterns: Sequence[Any], *, suppress: bool = False) -> None:
        self.accepted = [*self.accepted, *((alarm, one) for one in patterns)][-_ACCEPTED:]
        if self.stream is not None and self.model is not None:
            self.model.accept(self.stream, self.accepted, suppress=suppress)
            self._kept = min(self._kept, self.n_rows - 1)  # the snapshot does not know of it

    # ---------------------------------------------------------------- learning

    @property
    def words(self) -> str:
        """The phase in words, with the fraction of the training time that has passed."""
        if self.phase != LEARNING:
            return "off" if self.idle and self.phase == WATCHING else self.phase
        begun = 0 if self.start is None else self.seen - self.start
        return f"learning, {min(1.0, begun / self.learn) if self.learn else 0:.0%}"

    def begin(self, model: LiveModel, store: Store) -> list[Message]:
        """Start to score, from the first row that the model was not trained on."""
        self.model, self.phase = model, WATCHING
        self._set_channels(model.channels)
        cells, times = journal_matrix(store.journal(self.name, self.learned), len(self.channels))
        messages = []
        for i, time in enumerate(times.astype(np.int64).tolist()):
            (changes,), (score,), (idle,) = self._score(cells[i : i + 1], [time], self.learned + i)
            messages += self._scored(changes, score, idle, time)
        return messages

    def retrained(
        self, found: LiveModel | Exception | None, words: str, store: Store
    ) -> list[Message]:
        """A training has ended: switch to the newer model where there is one, and log it."""
        messages = []
        if isinstance(found, Exception):
            words = f"a newer model could not be trained: {found}"
        elif found is not None and found is not self.model:
            messages = self._switch_model(found, store)
        self.model_words = words
        log.info("%s: %s", ascii(self.name), words)
        return messages

    def _switch_model(self, model: LiveModel, store: Store) -> list[Message]:
        """Continue with a newer model, whose stream gets the last rows first; open events end."""
        messages: list[Message] = []
        if self.stream is not None:
            messages = self.life.changes(self.stream.finish().changes, self.seen, self.origin)
        self.model, stream = model, model.stream()
        rows = store.journal(self.name, max(0, self.n_rows - WARM * model.reach), self.n_rows)
        cells, times = journal_matrix(rows, len(self.channels))
        self._base = self.n_rows - len(rows)
        self._settling.rows = []
        if len(rows):
            self.origin = int(times[0].astype(np.int64))
            stream.add(cells, times)
            stream.judge_afresh()
        if self.accepted:
            model.accept(stream, self.accepted)
        with self._stream_lock:
            self.stream = stream
        self._kept = min(self._kept, self.n_rows - 1)  # the snapshot is of the model before
        return messages

    def learn_longer(self) -> None:
        """Collect more rows: a fit failed."""
        self.phase = LEARNING
        self.learn += max(1, (self._config.model.learn or 0) // _RETRY)
