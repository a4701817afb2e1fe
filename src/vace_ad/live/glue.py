"""The one module that joins live operation to the detector and its stream."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from vace_ad.errors import ConfigError, FeedbackError, InputError, ModelFileError
from vace_ad.frames.idle import window_times
from vace_ad.frames.spans import read_spans
from vace_ad.live.core import Model, Rows, Stream, Times

if TYPE_CHECKING:
    from vace_ad.alarms.budget import Budget
    from vace_ad.detector import VACE

log = logging.getLogger("vace_ad.live")


class VaceModel:
    """A fitted VACE, as live operation sees it."""

    def __init__(
        self, detector: VACE, identity: str, budget: Budget, step: int | None = None
    ) -> None:
        self._detector, self._budget, self._step = detector, budget, step
        try:
            detector.model_.threshold(budget, None, step)  # refused now, not at the first row
        except InputError:
            raise ConfigError(
                f"alarms.budget is {budget.words}, and the model was fitted on rows without time; "
                'say how often rows come by [align] step = "10s", or write budget = "1 in 10000 '
                'rows"'
            ) from None
        self.identity = identity
        self.step: int | None = detector.model_.step  # nanoseconds between the rows of the fit
        self.reach = detector.model_.reach
        self.channels: tuple[str, ...] = tuple(detector.channels_)

    def stream(self) -> Stream:
        """A new stream."""
        return self._detector.stream(budget=self._budget, step=self._step)

    def restore(self, data: bytes) -> Stream:
        """A stream from its state, as our own store kept it; that of another model is refused."""
        from vace_ad.stream import Stream

        return Stream.from_bytes(data, self._detector, trusted=True)

    def accept(self, stream: Stream, own: Sequence[tuple[str, Any]], *, hush: bool = False) -> None:
        """Take what people accepted, of all entities in the file beside the model and of this one.

        A pattern that cannot be read is left out, with a warning in the log.
        """
        from vace_ad.alarms.pattern import Pattern

        patterns = list(self._detector.feedback.patterns)
        for name, plain in own:
            try:
                patterns.append(Pattern.from_plain(name, plain))
            except FeedbackError as error:
                log.warning("an accepted pattern is left out: %s", error)
        cast(Any, stream).accept(patterns, hush=hush)

    def call_fault(self, alarm: str, entity: str, stretch: tuple[int, int] | None) -> None:
        """Write a verdict to the file beside the model, as `vace feedback --fault` does."""
        note = f"alarm {alarm}"
        for line in self._detector.feedback.active:
            if line.verdict == "fault" and line.note.endswith(note):
                self._detector.undo(line.id)
        if stretch is not None:
            times = tuple(np.datetime64(time, "ns") for time in stretch)
            self._detector.accept(times, verdict="fault", note=f"{entity[:200]}, {note}")


class VaceCore:
    """Loads and fits VACE detectors."""

    def __init__(
        self,
        budget: Budget,
        random_state: int = 0,
        step: int | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        maintenance: Path | None = None,
    ) -> None:
        """`step` is the time between aligned rows, for models whose rows had no time.

        `settings` are those of what is learned here; `maintenance` a file of planned windows.
        """
        self._budget, self._step = budget, step
        self._settings = {"random_state": random_state, **(settings or {})}
        self._planned: dict[str, Any] = {}
        if maintenance is not None:
            windows = tuple(span.window for span in read_spans(maintenance))
            window_times(windows, "UTC")  # refused now, not at the first row
            self._planned = {"maintenance": windows}

    def load(self, path: Path) -> Model:
        """Read a model file."""
        from vace_ad import load

        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise ModelFileError(
                f"the model {path} cannot be read ({error.strerror}); make it with `vace fit`"
            ) from None
        return VaceModel(load(path, **self._planned), digest, self._budget, self._step)

    def fit(self, rows: Rows, channels: tuple[str, ...], time: Times, path: Path) -> Model:
        """Learn normal operation from rows; the file is there whole or not at all."""
        from vace_ad import VACE
        from vace_ad.frames import Table

        settings = {**self._settings, **self._planned}
        detector = VACE(**settings).fit(Table(rows, channels, time))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        detector.save(partial)
        os.replace(partial, path)
        return self.load(path)
