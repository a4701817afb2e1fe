"""The detector as live operation uses it; the only module here that imports it."""

from __future__ import annotations

import hashlib
import logging
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.budget import Budget
from vace_ad.alarms.pattern import Pattern
from vace_ad.app.retraining import retrain
from vace_ad.detector import VACE, load
from vace_ad.errors import ConfigError, FeedbackError, InputError, ModelFileError, VaceError
from vace_ad.frames.calendar import check_entries
from vace_ad.frames.idle import window_times
from vace_ad.frames.spans import Span, read_spans
from vace_ad.frames.table import Table
from vace_ad.stream import Stream

log = logging.getLogger("vace_ad.live")
Rows = NDArray[np.float64]  # (n, n_channels), NaN where a cell is missing
Times = NDArray[np.datetime64]  # (n,) nanoseconds
SHOWN = 360  # scores that the page draws


def journal_matrix(rows: Sequence[tuple[int, int, bytes]], n_channels: int) -> tuple[Rows, Times]:
    """Stored rows as a matrix and their times; channels that were not known then are empty."""
    cells: Rows = np.full((len(rows), n_channels), np.nan)
    for i, (_, _, blob) in enumerate(rows):
        known = np.frombuffer(blob)
        cells[i, : len(known)] = known
    return cells, np.array([time for _, time, _ in rows], "datetime64[ns]")


class LiveModel:
    """A fitted VACE with the budget of a watch."""

    def __init__(
        self,
        detector: VACE,
        identity: str,
        budget: Budget,
        step: int | None = None,
        rest: int = 0,
    ) -> None:
        """`identity` differs between any two models: a state belongs to one of them.

        After `rest` nanoseconds without new evidence an event rests; 0: never.
        """
        self._detector, self._budget, self._step, self._rest = detector, budget, step, rest
        try:
            detector.model_.threshold(budget, step)  # refused now, not at the first row
        except InputError:
            raise ConfigError(
                f"alarms.budget is {budget.words}, and the model was fitted on rows without time; "
                'say how often rows come by [align] step = "10s", or write budget = "1 in 10000 '
                'rows"'
            ) from None
        self.identity = identity
        self.step: int | None = detector.model_.step  # nanoseconds between the training rows
        self.reach = detector.model_.reach  # consecutive rows that a score needs
        self.channels: tuple[str, ...] = tuple(detector.channels_)

    def stream(self) -> Stream:
        """A new stream."""
        return self._resting(self._detector.stream(budget=self._budget, step=self._step))

    def _resting(self, stream: Stream) -> Stream:
        step = self.step or self._step
        if self._rest and step:
            stream.rest_after(max(1, self._rest // step))
        return stream

    def restore(self, data: bytes) -> Stream:
        """A stream from its state in our own store; that of another model is refused."""
        return self._resting(Stream.from_bytes(data, self._detector, trusted=True))

    def accept(
        self, stream: Stream, own: Sequence[tuple[str, Any]], *, suppress: bool = False
    ) -> None:
        """Suppress alarms like those accepted: for all entities beside the model, and for this one.

        `own` holds pairs of an id and plain values; one that cannot be read is skipped, with a
        warning. `suppress` also accepts the event that is open now.
        """
        patterns = list(self._detector.feedback.patterns)
        for name, plain in own:
            try:
                patterns.append(Pattern.from_plain(name, plain))
            except FeedbackError as error:
                log.warning("an accepted pattern is skipped: %s", error)
        stream.accept(patterns, suppress=suppress)

    def mark_fault(self, alarm: str, entity: str, span: tuple[int, int] | None) -> None:
        """Write a verdict to the file beside the model, as `vace feedback --fault` does.

        `span` is the start and the end in nanoseconds; None takes the verdict back.
        """
        note = f"alarm {alarm}"
        try:
            for line in self._detector.feedback.active:
                if line.verdict == "fault" and line.note.endswith(note):
                    self._detector.undo(line.id)
            if span is not None:
                times = tuple(np.datetime64(time, "ns") for time in span)
                self._detector.accept(times, verdict="fault", note=f"{entity[:200]}, {note}")
        except VaceError as error:  # the watch goes on
            log.warning("%s: %s: the verdict is not stored: %s", ascii(entity), note, error)


def _spans(stretches: Sequence[tuple[int, int]]) -> list[Span]:
    return [Span(*(str(np.datetime64(time, "ns")) for time in one)) for one in stretches]


class Detectors:
    """Loads and fits models."""

    def __init__(
        self,
        budget: Budget,
        random_state: int = 0,
        step: int | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        maintenance: Path | None = None,
        rest: int = 0,
    ) -> None:
        """`step` is the time between aligned rows, for models whose rows had no time.

        `settings` are those of what is learned here; `maintenance` a file of planned windows;
        `rest` the time without new evidence after which an event rests.
        """
        self._budget, self._step, self._rest = budget, step, rest
        self._settings = {"random_state": random_state, **(settings or {})}
        check_entries(self._settings.get("calendar", ()))  # refused now, not after the training
        self._planned: dict[str, Any] = {}
        if maintenance is not None:
            windows = tuple(span.window for span in read_spans(maintenance))
            window_times(windows, "UTC")  # refused now, not at the first row
            self._planned = {"maintenance": windows}

    def load(self, path: Path) -> LiveModel:
        """Read a model file."""
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise ModelFileError(
                f"the model {path} cannot be read ({error.strerror}); make it with `vace fit`"
            ) from None
        detector = load(path, **self._planned)
        return LiveModel(detector, digest, self._budget, self._step, self._rest)

    def retrain(
        self,
        model: LiveModel,
        rows: Rows,
        time: Times,
        path: Path,
        faults: Sequence[tuple[int, int]] = (),
        doubtful: Sequence[tuple[int, int]] = (),
    ) -> tuple[LiveModel | None, str]:
        """A newer model where it is not worse, else None; and what became of it, in words.

        `faults` are known; `doubtful` stretches are only left out of training.
        """
        found = retrain(
            path,
            model._detector,
            Table(rows, model.channels, time),
            self._budget,
            faults=_spans(faults),
            left_out=_spans(doubtful),
        )
        compared = f"{found.new.words}, before {found.present.words}, in {found.rows:,} rows"
        if found.version is None:
            return None, f"a newer model was worse and is not used: {compared}"
        return self.load(path), f"model version {found.version.number}: {compared}"

    def fit(self, rows: Rows, channels: tuple[str, ...], time: Times, path: Path) -> LiveModel:
        """Train on rows, write the model to a file, and return it."""
        settings = {**self._settings, **self._planned}
        detector = VACE(**settings).fit(Table(rows, channels, time))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        detector.save(path)
        return self.load(path)


class ScoreHistory:
    """The newest pairs of time (nanoseconds) and score. One thread adds, others may read."""

    __slots__ = ("_pairs",)

    def __init__(self) -> None:
        # replaced, never changed: a reader sees all of the old or all of the new
        self._pairs = (array("q"), array("d"))

    def extend(self, times: Sequence[int], scores: Sequence[float]) -> None:
        """Add rows; the oldest go."""
        old_times, old_scores = self._pairs
        self._pairs = (
            (old_times + array("q", times[-SHOWN:]))[-SHOWN:],
            (old_scores + array("d", scores[-SHOWN:]))[-SHOWN:],
        )

    def __len__(self) -> int:
        return len(self._pairs[0])

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(*self._pairs, strict=True)

    @property
    def last(self) -> float | None:
        """The newest score."""
        scores = self._pairs[1]
        return scores[-1] if scores else None
