"""The stream: rows in, final and provisional scores out. A table is a stream run to its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad import files
from vace_ad.alarms.alarming import Alarming
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.feed import AlarmFeed, Change
from vace_ad.alarms.runs import Rules
from vace_ad.engine.workers import pool
from vace_ad.errors import ConfigError, InputError, StateError
from vace_ad.frames.segments import Segments
from vace_ad.frames.table import Table
from vace_ad.model import Model
from vace_ad.progress import Progress, silent
from vace_ad.signals.protocol import prefixed, under
from vace_ad.signals.rows import InStep, RowBuffer, added

Array = NDArray[np.float64]
KIND = files.Kind("vace-ad stream", 1, "a stream's state")
SLAB = 4096  # rows worked off at a time: few enough to stay in cache
SIDE_BY_SIDE = 512  # rows from which on signals are computed by several threads


@dataclass(frozen=True)
class Added:
    """What a stream says after some rows."""

    first: int  # number of the first row below, counted from the stream's first
    signals: Mapping[str, Array]  # final evidence of rows that became complete, (m,) each
    provisional: Array  # (n,), a score for each row just added, from the rows up to it alone
    changes: tuple[Change, ...] = ()  # alarms that were opened, updated or resolved

    @property
    def scores(self) -> Array:
        """The final scores (m,): the sum of the signals; NaN where a row has none."""
        return added(self.signals.values())


class Signals:
    """All evidence of a stream of rows that has no gaps in between but those it is told of."""

    def __init__(self, model: Model, live: bool) -> None:
        self._model, self._live, self._least = model, live, model.reach
        self._evidence = [signal.begin(live=live) for signal in model.signals]
        self.n_lines = sum(each.n_lines for each in self._evidence)
        self._in_step = InStep(len(self._evidence))
        self._begin()

    def _begin(self) -> None:
        self._n = 0  # rows of the present stretch
        self._first = RowBuffer(len(self._model.channels))  # of a stretch shorter than a patch

    def extend(self, rows: Array) -> tuple[Array, Array]:
        """Lines (n_lines, m) now complete, and the provisional ones of these rows."""
        before, early = self._n, 0
        self._n += len(rows)
        if before < self._least:
            self._first.add(rows)
            if self._n < self._least:
                return np.empty((self.n_lines, 0)), np.full((self.n_lines, len(rows)), np.nan)
            early, rows = before, self._first.first(self._n)
            self._first = RowBuffer(rows.shape[1])
        found = self._in_step.add(self._each(rows))
        if not self._live:
            return np.concatenate(found), np.empty((self.n_lines, 0))
        now = np.concatenate([each.now for each in self._evidence])
        return np.concatenate(found), now[:, early:]

    def _each(self, rows: Array) -> list[Array]:
        """What each signal gives; side by side where there is enough to do."""
        if len(rows) < SIDE_BY_SIDE:
            return [each.add(rows) for each in self._evidence]
        return list(pool().map(lambda each: each.add(rows), self._evidence))

    def cut(self, skipped: int = 0) -> Array:
        """End the stretch, if there is one; then rows without evidence follow."""
        done = [np.empty((self.n_lines, 0))]
        if self._n >= self._least:
            done.append(self._joined([each.end() for each in self._evidence]))
        else:
            skipped += self._n  # too short a stretch has no evidence
        if skipped:
            done.append(self._joined([each.skip(skipped) for each in self._evidence]))
        self._begin()
        return np.concatenate(done, axis=1)

    def finish(self) -> Array:
        """The lines that are left when the stream ends."""
        last = self.cut()
        rest = self._joined([each.finish() for each in self._evidence])
        return np.concatenate([last, rest], axis=1)

    def _joined(self, parts: list[Array]) -> Array:
        return np.concatenate(self._in_step.add(parts))

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows."""
        state = {"n": np.array([self._n])}
        state |= prefixed("first", self._first.state()) | prefixed("step", self._in_step.state())
        for signal, each in zip(self._model.signals, self._evidence, strict=True):
            state |= prefixed(signal.key, each.state())
        return state

    def resume(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back a state."""
        self._n = int(state["n"][0])
        self._first.resume(under("first", state))
        self._in_step.resume(under("step", state))
        for signal, each in zip(self._model.signals, self._evidence, strict=True):
            each.resume(under(signal.key, state))


class Stream:
    """Scores of a series as it comes, in memory and time a row that do not grow with it.

    Every row gets a provisional score at once, from the rows up to it alone, and its final score
    once all patches that cover it are known: the score that the whole table would give, bit for
    bit, whatever the chunks.
    """

    def __init__(
        self,
        model: Model,
        *,
        budget: Budget | None = None,
        rules: Rules | None = None,
        live: bool = True,
    ) -> None:
        """Alarms keep to `budget`, by default one false alarm in 10,000 rows."""
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
        self._signals = Signals(model, live)
        self._n_rows = 0  # taken in
        self._n_final = 0  # given out
        self._time: np.datetime64 | None = None  # of the last row
        self._latest = np.nan  # provisional score
        self._lead: str | None = None  # the loudest provisional evidence
        self._budget, self._rules = budget or Budget(), rules
        self._feed = AlarmFeed(Alarming.of(model, self._budget, rules, None)) if live else None

    @property
    def n_rows(self) -> int:
        """Rows added so far."""
        return self._n_rows

    def add(self, rows: Any, time: Any = None) -> Added:
        """Take one row or many: an array (n_channels,) or (n, n_channels), or a table."""
        table = self._table(rows, time)
        return self._add(table, self._cuts(table))

    def _add(self, table: Table, cuts: tuple[int, ...]) -> Added:
        lines, provisional = [], []
        for a in range(0, len(table), SLAB):
            b = min(a + SLAB, len(table))
            rows, inside = table.block(a, b), [cut - a for cut in cuts if a <= cut < b]
            undecided = self._segments.undecided(rows, inside) if self._live else None
            now = []
            for piece in self._segments.add(rows, inside):
                if piece.rows is None:
                    lines.append(self._signals.cut(piece.n))
                    now.append(np.full(piece.n, np.nan))
                    continue
                done, newest = self._signals.extend(piece.rows)
                lines.append(done)
                now.append(added(newest))
                if newest.shape[1] and not np.isnan(newest[:, -1]).any():
                    self._lead = list(self.model.lines)[int(np.argmax(newest[:, -1]))]
            if undecided is not None:
                provisional.append(self._provisional(np.concatenate([*now, []]), undecided))
        self._n_rows += len(table)
        scores = np.concatenate([*provisional, []])
        changes: tuple[Change, ...] = ()
        if self._feed is not None:
            rows = table.block(0, len(table))
            changes = self._feed.add(rows, table.time, scores, self._lead)
        return self._answer(lines, scores, changes)

    def _provisional(self, now: Array, undecided: NDArray[np.bool_]) -> Array:
        """The provisional scores of rows just added.

        `now` ends with those that were decided. A row in a gap that may still turn out short
        repeats the score before it.
        """
        known = np.full(len(undecided), np.nan)
        n = len(undecided) - self._segments.n_held
        if n > 0:
            known[:n] = now[len(now) - n :]
        place = np.where(undecided, -1, np.arange(len(undecided)))
        place = np.maximum.accumulate(place)  # the last decided row up to each; -1 for none
        scores = np.where(place < 0, self._latest, known[place])
        self._latest = float(scores[-1])
        return scores

    def finish(self) -> Added:
        """The rows that are left when the series ends."""
        lines = []
        for piece in self._segments.finish():
            if piece.rows is None:
                lines.append(self._signals.cut(piece.n))
            else:
                lines.append(self._signals.extend(piece.rows)[0])
        lines.append(self._signals.finish())
        changes = () if self._feed is None else self._feed.finish()
        return self._answer(lines, np.empty(0), changes)

    def _answer(self, lines: list[Array], provisional: Array, changes: tuple[Change, ...]) -> Added:
        whole = np.concatenate([np.empty((self._signals.n_lines, 0)), *lines], axis=1)
        first, self._n_final = self._n_final, self._n_final + whole.shape[1]
        return Added(first, dict(zip(self.model.lines, whole, strict=True)), provisional, changes)

    def _table(self, rows: Any, time: Any) -> Table:
        from vace_ad.frames.table import as_table

        if isinstance(rows, np.ndarray) and rows.ndim == 1:
            rows = rows[None]
        table = as_table(rows).aligned(self.model.channels)
        if time is not None:
            stamps = np.atleast_1d(np.asarray(time, "datetime64[ns]"))
            if len(stamps) != len(table):
                raise InputError(f"{len(stamps)} times came for {len(table)} rows; give one each")
            table = Table(table.values, table.names, stamps, table.named)
        return table

    def _cuts(self, table: Table) -> tuple[int, ...]:
        """Rows before which time jumped, by the step that the model was fitted at."""
        if table.time is None or not len(table):
            return ()
        known = table.time if self._time is None else np.insert(table.time, 0, self._time)
        pauses = np.diff(known).astype(np.int64)
        if (pauses <= 0).any():
            row = int(np.flatnonzero(pauses <= 0)[0])
            raise InputError(
                f"time does not go forward: {known[row + 1]} came after {known[row]}; give rows "
                "in order of time, each time once"
            )
        self._time = table.time[-1]
        if self.model.step is None:
            return ()
        found = np.flatnonzero(pauses > GAP_STEPS * self.model.step) + (len(table) - len(pauses))
        return tuple(found.tolist())

    # ------------------------------------------------------------------- state

    def to_bytes(self) -> bytes:
        """All that this stream knows of the rows so far, as the bytes of a safe file."""
        time = np.datetime64("NaT") if self._time is None else self._time
        arrays = {
            "counts": np.array([self._n_rows, self._n_final]),
            "time": np.array([time], "datetime64[ns]").view(np.int64),
            "latest": np.array([self._latest]),
            **prefixed("segments", self._segments.state()),
            **prefixed("signals", self._signals.state()),
        }
        description: dict[str, Any] = {
            "model": self.model.digest,
            "budget": asdict(self._budget),
            "rules": None if self._rules is None else asdict(self._rules),
        }
        if self._feed is not None:
            arrays |= prefixed("feed", self._feed.state())
            description |= {"event": self._feed.description(), "lead": self._lead}
        return files.pack(KIND, description, arrays)

    def save(self, path: str | PathLike[str]) -> None:
        """Keep the stream in a file, whole or not at all; `resume` goes on from there."""
        files.write(path, self.to_bytes())

    @classmethod
    def resume(cls, path: str | PathLike[str], model: Any) -> Self:
        """Go on where a stream of the same model stopped, as if nothing had happened."""
        try:
            data = Path(path).read_bytes()
        except OSError as wrong:
            raise StateError(f"{path} cannot be read: {wrong.strerror}") from wrong
        return cls._resumed(data, model, str(path))

    @classmethod
    def from_bytes(cls, data: bytes, model: Any) -> Self:
        """The reverse of `to_bytes`."""
        return cls._resumed(data, model, "this state")

    @classmethod
    def _under(cls, description: Mapping[str, Any], model: Model, name: str) -> Self:
        """A new stream with the budget of a state."""
        try:
            rules = description["rules"]
            return cls(
                model,
                budget=Budget(**description["budget"]),
                rules=None if rules is None else Rules(**rules),
            )
        except (KeyError, TypeError, ValueError) as wrong:
            raise StateError(f"{name} is incomplete or damaged: {wrong!r}") from wrong

    @classmethod
    def _resumed(cls, data: bytes, model: Any, name: str) -> Self:
        description, arrays = files.unpack(data, KIND, name, error=StateError)
        stream = cls._under(description, getattr(model, "model_", model), name)
        if description.get("model") != stream.model.digest:
            raise StateError(
                f"{name} belongs to another model ({description.get('model')}), not to this one "
                f"({stream.model.digest}); start a new stream, or take that model"
            )
        try:
            stream._n_rows, stream._n_final = (int(n) for n in arrays["counts"])
            stamp = arrays["time"].view("datetime64[ns]")[0]
            stream._time = None if np.isnat(stamp) else stamp
            stream._latest = float(arrays["latest"][0])
            stream._segments.resume(under("segments", arrays))
            stream._signals.resume(under("signals", arrays))
            if stream._feed is not None:
                stream._feed.resume(under("feed", arrays), description["event"])
            stream._lead = description["lead"]
        except (KeyError, ValueError, IndexError, TypeError) as wrong:
            raise StateError(f"{name} is incomplete or damaged: {wrong!r}") from wrong
        return stream


GAP_STEPS = 1.5  # a pause of more steps is a jump in time


def run(
    model: Model, tables: Iterable[Table], progress: Progress = silent
) -> Iterator[dict[str, Array]]:
    """The signals of a series that comes in tables, as rows become complete."""
    stream = Stream(model, live=False)
    several = not isinstance(tables, list)
    for table in tables:
        cuts = stream._cuts(table) if several else table.cuts()
        for a in range(0, len(table), SLAB):
            part = table[a : a + SLAB]
            found = stream._add(part, tuple(cut - a for cut in cuts if a <= cut < a + len(part)))
            progress("scoring", a + len(part), len(table))
            yield dict(found.signals)
    yield dict(stream.finish().signals)
