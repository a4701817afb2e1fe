"""The stream: rows in, final and provisional scores out. A table is a stream run to its end."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad import stream_file, tensor_file
from vace_ad.alarms.alarm_stream import Change, Taken
from vace_ad.alarms.budget import Budget, Threshold
from vace_ad.alarms.feed import AlarmFeed, accepted_change
from vace_ad.alarms.fixed_threshold import ScoreFeed
from vace_ad.alarms.pattern import Pattern
from vace_ad.alarms.recent import Latest
from vace_ad.alarms.suppression import Recogniser, Stretch
from vace_ad.errors import ConfigError, InputError, StateError
from vace_ad.frames.idle import IdleTracker
from vace_ad.frames.sampling import StepTracker, with_missing
from vace_ad.frames.segments import Piece, Rules, Segments
from vace_ad.frames.table import Table, as_table
from vace_ad.model import Model
from vace_ad.signals.ensemble import Together
from vace_ad.signals.row_buffer import ordered_sum

Array = NDArray[np.float64]
_NO_SCORES: Array = np.empty(0)
SLAB = 4096  # rows worked off at a time: few enough to stay in cache


@dataclass(frozen=True)
class Added:
    """The scores and alarms that `Stream.add` returns.

    Attributes
    ----------
    first
        Number of the first row with a final score, counted from the start of the stream.
    signals
        Final signals of the m rows that became complete, (m,) each; `scores` is their sum.
    provisional
        Score of each of the n rows just added, from rows up to it only, (n,).
    changes
        Alarms that were opened, updated or resolved.
    evidence, surprise
        Of rows whose alarms are decided: evidence divided by its limit, and surprise in nats.
    idle
        Whether each row just added is off or under maintenance, (n,).
    """

    first: int
    signals: Mapping[str, Array]
    provisional: Array
    changes: tuple[Change, ...] = ()
    evidence: Array = field(default_factory=lambda: _NO_SCORES)
    surprise: Array = field(default_factory=lambda: _NO_SCORES)
    idle: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))

    @property
    def scores(self) -> Array:
        """The final scores, (m,); NaN where a row has none."""
        return ordered_sum(self.signals.values())


class Stream:
    """Scores a series as rows arrive; memory and time per row do not grow with its length.

    Each row gets a provisional score at once, from rows up to it only. It gets its final score when
    all patches that cover it are complete; it equals the score of the whole table, bit for bit, for
    chunks of any size.
    """

    def __init__(
        self,
        model: Model,
        *,
        budget: Budget | None = None,
        rules: Rules | None = None,
        step: int | None = None,
        live: bool = True,
        alarms: bool | None = None,
        accepted: Sequence[Pattern] = (),
    ) -> None:
        """Create a stream of a model; `VACE.stream` is the simpler way.

        `budget`, `rules` and `step` are as in `VACE.detect`. `live` streams give provisional scores
        and alarms; `alarms` overrides the latter. `accepted` patterns raise no alarm.
        """
        config = model.config
        if live and config.reproduction.over_the_set:
            raise ConfigError(
                "this detector normalises over the whole scored series (normalisation or "
                "missing_direction), so it has no scores while rows come; use 'training' for "
                "both, or score a table"
            )
        self.model, self._live = model, live
        self._segments = Segments(
            len(model.channels), config.max_gap, config.max_missing, model.normal.rebuild
        )
        self._names = tuple(model.lines)
        self._n_rows = 0  # taken in
        self._n_final = 0  # given out
        self._steps = StepTracker(model.step_rule)
        self._idle = IdleTracker(model.idle)
        self._restarted: list[Taken] = []  # what rows gave that waited when judging began anew
        self._real = np.empty(0, bool)  # of rows not given out: whether they came, or were missing
        self._latest = np.nan  # provisional score
        self._budget, self._rules, self._step = budget or Budget(), rules, step
        self._feed: AlarmFeed | None = None
        self._score_feed: ScoreFeed | None = None
        if live if alarms is None else alarms:
            if self._budget.rate(model.step or step) is not None:
                self._feed = AlarmFeed(model, self._budget, rules, step)
            elif live:
                self._score_feed = ScoreFeed(model, self.threshold.value, rules)
        self._ahead = live or (self._feed is not None and not config.reproduction.over_the_set)
        self._signals = Together(model.signals, model.scored, model.reach, self._ahead)
        self._recogniser: Recogniser | None = None
        if live and accepted:
            self.accept(accepted)

    @property
    def n_rows(self) -> int:
        """Number of rows added so far."""
        return self._n_rows

    @property
    def limit(self) -> float | None:
        """The score threshold of a live stream whose budget is a share or a threshold."""
        return None if self._score_feed is None else self._score_feed.threshold

    def latest(self, n: int) -> Latest | None:
        """Return the last n rows with their evidence and expected values; None without a budget."""
        return None if self._feed is None else self._feed.latest(n)

    @property
    def tells_rows(self) -> bool:
        """Whether changes have their exact rows when many rows are added at once."""
        return self._recogniser is None

    def accept(
        self, patterns: Sequence[Pattern], *, suppress: bool = False, hush: bool | None = None
    ) -> None:
        """Suppress alarms on rows that match these patterns, from the next row on; none clears all.

        `suppress` also marks the open alarm, if any, as normal; `hush` is its deprecated name.
        """
        if hush is not None:
            warnings.warn("hush is now suppress", DeprecationWarning, stacklevel=2)
            suppress = hush
        if not self._live:
            raise ConfigError("only live streams take patterns; give a table to VACE.detect")
        if self._recogniser is None:
            model = self.model
            self._recogniser = model.recogniser()
            self._recogniser.begin(self._n_rows)
        self._recogniser.replace(patterns)
        self.tolerate({name for pattern in patterns for name in pattern.channels})
        feed = self._feed or self._score_feed
        if suppress and feed is not None:
            feed.suppress()

    def tolerate(self, channels: Collection[str]) -> None:
        """Require more evidence for alarms of these channels near accepted patterns."""
        if self._feed is not None:
            self._feed.accept(channels)

    def add(self, rows: Any, time: Any = None) -> Added:
        """Add a table, or an array (n_channels,) or (n, n_channels) with the `time` of its rows."""
        return self.add_table(self._table(rows, time))

    def add_table(self, table: Table, tolerated: Array | None = None) -> Added:
        """Add a table with the model's channels; `tolerated` (n,) divides its rows' evidence."""
        lines, provisional, taken = [], [], []
        judged: list[Taken] = []
        ended: list[Stretch] = []
        whole = self._steps.add(table.time, len(table))
        idle = np.zeros(len(table), bool)
        for a in range(0, len(table), SLAB):
            b = min(a + SLAB, len(table))
            rows, steps = table.block(a, b), whole[a:b]
            time = None if table.time is None else table.time[a:b]
            if self.model.idle.given:
                idle[a:b] = self._idle.add(rows, time, table.zone).any
                steps = steps.without(idle[a:b])
            divisors: Array | None = None if tolerated is None else tolerated[a:b]
            if self._recogniser is not None:
                rows, divisors, over = self._recogniser.add(rows, steps.cuts())
                ended += over
            taken.append(rows)
            rows, steps, real = with_missing(rows, steps)
            came = np.ones(len(rows), bool) if real is None else real
            self._real = np.concatenate([self._real, came])
            cuts = steps.cuts()
            waiting = self._segments.waiting(rows, cuts, steps.off) if self._live else None
            if self._feed is not None:
                self._feed.expect(came, time, divisors, waiting)
            now = []
            for piece in self._segments.add(rows, cuts, steps.off):
                done, newest = self._take(piece, judged)
                lines.append(done)
                now.append(newest)
            if self._live:
                provisional.append(self._provisional(now, len(rows), waiting)[came])
        self._n_rows += len(table)
        scores = _end_to_end(provisional, _NO_SCORES)
        changes: tuple[Change, ...] = ()
        if self._score_feed is not None:
            rows = _end_to_end(taken, table.block(0, 0), axis=0)
            changes = self._score_feed.add(rows, table.time, scores)
        return replace(self._answer(lines, scores, changes, judged, ended), idle=idle)

    def _take(self, piece: Piece, judged: list[Taken]) -> tuple[Array, Array]:
        """Lines now complete, and the provisional ones of a piece; alarms see it too."""
        if piece.rows is None:
            done, newest = self._signals.cut(piece.n), self._signals.nothing(piece.n)
        else:
            done, newest = self._signals.extend(self.model.to_score(piece.rows))
        if self._feed is not None:
            scores = ordered_sum(newest) if self._ahead and piece.rows is not None else None
            judged.append(self._feed.take(piece, scores))
        return done, newest

    def _provisional(self, now: list[Array], n: int, waiting: NDArray[np.intp] | None) -> Array:
        """The provisional scores of the n rows just added.

        `now` (n_lines, m) each ends with the rows that were decided. A row in a gap that may still
        turn out short repeats the score before it.
        """
        if self._segments.n_held:
            now = [*now, self._signals.nothing(self._segments.n_held)]
        lines = _end_to_end(now, self._signals.nothing(0))
        lines = lines[:, lines.shape[1] - n :]
        scores = ordered_sum(lines)
        if waiting is not None:
            place = np.maximum.accumulate(np.where(waiting > 0, -1, np.arange(n)))
            scores = np.where(place < 0, self._latest, scores[place])
        self._latest = float(scores[-1])
        return scores

    def judge_afresh(self, *, new_level: bool = False) -> None:
        """Restart alarms and limits; with `new_level`, the level of the last rows is normal."""
        if self._feed is not None:
            self._restarted.append(self._feed.restart(new_level))

    def rest_after(self, rows: int) -> None:
        """Also report the change "rest" when an open event has no new evidence for so many rows.

        New evidence is then reported as "wake"; the event is still the same.
        """
        if self._feed is not None:
            self._feed.rest_after(rows)

    def finish(self) -> Added:
        """End the series and return the final scores of the remaining rows."""
        lines: list[Array] = []
        judged: list[Taken] = []
        for piece in self._segments.finish():
            lines.append(self._take(piece, judged)[0])
        lines.append(self._signals.finish())
        ended = [] if self._recogniser is None else self._recogniser.finish()
        if self._feed is not None:
            judged.append(self._feed.finish())
        changes = () if self._score_feed is None else self._score_feed.finish()
        return self._answer(lines, np.empty(0), changes, judged, ended)

    def _answer(
        self,
        lines: list[Array],
        provisional: Array,
        changes: tuple[Change, ...],
        judged: Sequence[Taken],
        ended: Sequence[Stretch],
    ) -> Added:
        judged, self._restarted = [*self._restarted, *judged], []
        changes += tuple(change for one in judged for change in one.changes)
        changes += tuple(accepted_change(stretch, self._feed) for stretch in ended)
        whole = _end_to_end(lines, self._signals.nothing(0))
        done, self._real = np.split(self._real, [whole.shape[1]])
        whole = whole if done.all() else whole[:, done]
        first, self._n_final = self._n_final, self._n_final + whole.shape[1]
        return Added(
            first,
            dict(zip(self._names, whole, strict=True)),
            provisional,
            changes,
            _end_to_end([one.evidence for one in judged], _NO_SCORES),
            _end_to_end([one.surprise for one in judged], _NO_SCORES),
        )

    def _table(self, rows: Any, time: Any) -> Table:
        if isinstance(rows, np.ndarray) and rows.ndim == 1:
            rows = rows[None]
        inputs = self.model.inputs
        table = as_table(rows, inputs).aligned(inputs)
        if time is not None:
            stamps = np.atleast_1d(np.asarray(time, "datetime64[ns]"))
            if len(stamps) != len(table):
                raise InputError(f"got {len(stamps)} times for {len(table)} rows; give one each")
            table = replace(table, time=stamps)
        return self.model.table(table)

    @property
    def threshold(self) -> Threshold:
        """The limits of alarms, in words."""
        return self.model.threshold(self._budget, self._step)

    @property
    def trouble(self) -> str | None:
        """Why the last rows have no score, and what to do; None where nothing is wrong."""
        return self._steps.trouble

    # ------------------------------------------------------------------- state

    def to_bytes(self) -> bytes:
        """Return the state as bytes, which contain no code."""
        return stream_file.pack(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Save the state to a file, atomically; `resume` continues from it."""
        tensor_file.write(path, self.to_bytes())

    @classmethod
    def resume(cls, path: str | PathLike[str], model: Any) -> Self:
        """Restore a stream of the same model or detector; it continues where it stopped."""
        try:
            data = Path(path).read_bytes()
        except OSError as wrong:
            raise StateError(f"{path} cannot be read: {wrong.strerror}") from wrong
        return stream_file.unpack(cls, data, model, str(path))

    @classmethod
    def from_bytes(cls, data: bytes, model: Any, *, trusted: bool = False) -> Self:
        """Restore a stream; of a `trusted` state, the caller's own, only the checksum is tested."""
        return stream_file.unpack(cls, data, model, "this state", trusted=trusted)


def _end_to_end(parts: list[Array], none: Array, axis: int = -1) -> Array:
    """The parts as one; `none` where there is no part."""
    return parts[0] if len(parts) == 1 else np.concatenate([none, *parts], axis=axis)
