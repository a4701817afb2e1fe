"""Signals of sliding windows, held against a training envelope: level, scale and relation.

Level and scale: channels outside their range, and swings wider or narrower than in training.

This is what the patch normalisation removes. A mean below or above its envelope is level, a
deviation that is too large or too small is scale; the shortest window is there for short bursts.

Relation: how channels move together, which each channel on its own cannot tell.

Every channel is predicted, row by row, from all the others by a ridge regression of training. What
is left swings more where a channel goes its own way, even within its normal range and seasonality.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_not
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.incremental import Update
from vace_ad.signals.protocol import (
    Arrays,
    Evidence,
    Fitted,
    Layout,
    Signal,
    Training,
    prefixed,
    under,
)
from vace_ad.signals.row_buffer import InStep, RowBuffer, WindowMeans, hold_last, repeated
from vace_ad.signals.smoothing import PastAverage
from vace_ad.signals.windows import (
    Envelope,
    Windowed,
    Windows,
    block_moments,
    both_sides,
    by_line,
    features_of,
)

Array = NDArray[np.float64]


class WindowsEvidence(Evidence):
    """The evidence of all window lengths along a stream of what a signal sees of scaled rows."""

    def __init__(
        self, normal: Normal, windows: Windows, seen: Callable[[Array], Array], live: bool
    ) -> None:
        super().__init__(len(windows.names))
        self._normal, self._windows, self._seen, self._live = normal, windows, seen, live
        self._each = [
            EnvelopeEvidence(e, normal.n_channels, windows.half_life, windows.warm)
            for e in windows.envelopes
        ]
        self._in_step = InStep(len(self._each))
        self._nows: list[Array] = []  # of each window length
        self._nothing = np.empty((self.n_lines, 0))

    def add(self, rows: Array, scaled: Array | None = None) -> Array:
        """The evidence that is complete after these rows."""
        seen = self._seen(self._normal.scaled(rows) if scaled is None else scaled)
        found = self._in_step.add([each.add(seen) for each in self._each])
        if self._live:
            before, self._nows = self._nows, [each.now for each in self._each]
            if len(before) != len(self._nows) or any(map(is_not, before, self._nows)):
                self.now = self._windows.weighted(self._nows)
        return self._windows.weighted(found) if found[0].shape[1] else self._nothing

    def end(self) -> Array:
        """The evidence that is left of the stretch."""
        return self._windows.weighted(self._in_step.add([each.end() for each in self._each]))

    def state(self) -> dict[str, NDArray[Any]]:
        """States of all window lengths."""
        found = prefixed("step", self._in_step.state())
        for i, each in enumerate(self._each):
            found |= prefixed(str(i), each.state())
        return found

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        self._in_step.resume(under("step", state))
        for i, each in enumerate(self._each):
            each.resume(under(str(i), state))


class EnvelopeEvidence(Evidence):
    """The lines of one window length along a stream of rows as the envelope saw them."""

    def __init__(self, envelope: Envelope, n_channels: int, half_life: float, warm: int) -> None:
        super().__init__(len(envelope.windowed.weights))
        self._envelope, self._d = envelope, n_channels
        self._half_life, self._warm = half_life, warm
        self._used: PastAverage | None = None  # known from the first windows of the stream on
        self._mean_evidence = PastAverage(envelope.mean_evidence, half_life)
        self._nothing = np.empty((self.n_lines, 0))
        self._begin()

    def _begin(self) -> None:
        envelope = self._envelope
        self._n = 0  # rows of the stretch
        self._rows = RowBuffer(self._d)
        self._blocks = RowBuffer(2 * self._d)  # means, then sums of squares
        self._means = WindowMeans(envelope.window, envelope.step, self.n_lines)
        self._held = np.full((self.n_lines, 1), np.nan)  # provisional, from the last window on

    def add(self, rows: Array, scaled: Array | None = None) -> Array:
        """The evidence that is complete after these rows."""
        envelope, before = self._envelope, self._n
        self._n += len(rows)
        self._rows.add(rows)
        whole = len(self._rows) // envelope.step
        if whole == 0:
            self.now = repeated(self._held, len(rows))
            return self._nothing
        self._blocks.add(block_moments(self._rows.first(whole * envelope.step), envelope.step))
        self._rows.drop(whole * envelope.step)
        n_windows = len(self._blocks) - envelope.blocks + 1
        if n_windows <= 0:
            self.now = repeated(self._held, len(rows))
            return self._nothing
        done, held = self._windows(self._blocks.all)
        self._blocks.drop(n_windows)
        # The row that completes each window; rows from there on hold its evidence.
        last = self._n - (self._n - envelope.window) % envelope.step - 1  # of the newest window
        self.now = hold_last(self._held, held, last, envelope.step, before, self._n)
        self._held = held[:, -1:]
        return done

    def _windows(self, moments: Array) -> tuple[Array, Array]:
        """Rows that the next windows complete, and the provisional evidence of each window."""
        envelope = self._envelope
        features = features_of(
            moments, envelope.blocks, envelope.step, envelope.windowed, envelope.bounds
        )
        excess = envelope.excess(features)  # above, then below
        if self._used is None:
            first = max(1, (self._warm - envelope.window) // envelope.step + 1)
            self._used = self._average(excess[:first].mean(axis=0))
        used, f = self._used.add(excess), features.shape[1]
        fresh = both_sides(np.maximum(excess - used, 0))
        fresh /= 1 + used[:, :f] + used[:, f:]
        sums = by_line(fresh, self.n_lines)
        # The windows complete rows up to the one that each of them starts at.
        completed = slice(envelope.step - 1 if self._means.n_given else 0, None, envelope.step)
        done, mean_evidence = self._weighed(self._means.add(sums))
        after = self._mean_evidence.value[:, None]
        if len(features) > 1:
            after = np.concatenate([mean_evidence[:, 1:], after], axis=1)[:, completed]
        return done, np.log1p(sums) / (1 + after)

    def _average(self, start: Array) -> PastAverage:
        return PastAverage(start, self._half_life / self._envelope.step)

    def _weighed(self, rows: Array) -> tuple[Array, Array]:
        """Evidence of rows, divided by 1 + its running mean; and that mean."""
        evidence = np.log1p(rows)
        mean_evidence = self._mean_evidence.add(evidence.T).T
        return np.asarray(evidence / (1 + mean_evidence)), mean_evidence

    def end(self) -> Array:
        """The evidence that is left of the stretch."""
        done, _ = self._weighed(self._means.finish(self._n))
        self._begin()
        return done

    def state(self) -> dict[str, NDArray[Any]]:
        """Running means, waiting rows and blocks."""
        used = {} if self._used is None else prefixed("used", self._used.state())
        return {
            **used,
            "held": self._held,
            "n": np.array([self._n]),
            **prefixed("mean_evidence", self._mean_evidence.state()),
            **prefixed("rows", self._rows.state()),
            **prefixed("blocks", self._blocks.state()),
            **prefixed("means", self._means.state()),
        }

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        if used := under("used", state):
            self._used = self._average(used["start"])
            self._used.resume(used)
        self._mean_evidence.resume(under("mean_evidence", state))
        self._held, self._n = state["held"], int(state["n"][0])
        self._rows.resume(under("rows", state))
        self._blocks.resume(under("blocks", state))
        self._means.resume(under("means", state))


@dataclass(frozen=True)
class WindowSignal(Signal):
    """Window means and deviations of every channel against their training envelope."""

    windowed: ClassVar[tuple[Windowed, ...]]  # lengths, and the lines that each counts in

    normal: Normal
    windows: Windows

    @classmethod
    def wanted(cls, config: VACEConfig) -> bool:
        """Part of the default's amplitude signals."""
        return config.amplitude

    @classmethod
    @abstractmethod
    def taught_by(cls, training: Training) -> Sequence[Array]:
        """What it sees of training rows, held out."""

    @abstractmethod
    def seen(self, scaled: Array) -> Array:
        """What it sees of scaled rows."""

    @classmethod
    def fit(cls, training: Training) -> Fitted:
        """Learn the envelopes of training rows."""
        windows, without = Windows.fit(cls.taught_by(training), cls.windowed, training.config)
        each = zip(training.without, without, strict=True)
        return Fitted(cls(training.normal, windows), [cls(*pair) for pair in each])

    def updated(self, update: Update) -> Fitted:
        """Envelopes that hold old and new rows."""
        parts = [self.seen(part) for part in update.scaled]
        accepted = [self.seen(part) for part in update.scaled_accepted]
        windows, without = self.windows.updated(parts, accepted, update.weight)
        return Fitted(replace(self, windows=windows), [replace(self, windows=w) for w in without])

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream."""
        return WindowsEvidence(self.normal, self.windows, self.seen, live)

    def constants(self) -> dict[str, Any]:
        """Those of the windows."""
        return self.windows.constants()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The envelopes."""
        return self.windows.arrays()

    @classmethod
    def layout(cls, config: VACEConfig, n_channels: int, constants: Mapping[str, Any]) -> Layout:
        """What `arrays` gives."""
        return Windows.layout(config, n_channels, constants)

    @classmethod
    def restored(
        cls, arrays: Arrays, normal: Normal, config: VACEConfig, constants: Mapping[str, Any]
    ) -> Self:
        """The reverse of `arrays`."""
        return cls(normal, Windows.restored(arrays, config, constants))


class LevelScale(WindowSignal):
    """Windows of the rows themselves."""

    key: ClassVar[str] = "level_scale"
    lines: ClassVar[Mapping[str, str]] = {
        "level": "means outside the training range",
        "scale": "standard deviations outside the training range",
    }
    windowed = (
        Windowed(1, (("level", 0.5), ("scale", 1.0))),
        Windowed(3, (("level", 0.5), ("scale", 1.0))),
        Windowed(12, (("scale", 0.25),)),
    )

    @classmethod
    def taught_by(cls, training: Training) -> Sequence[Array]:
        """Scaled rows; nothing was learned from them yet."""
        return training.scaled

    def seen(self, scaled: Array) -> Array:
        """The rows as they are."""
        return scaled


class Relation(WindowSignal):
    """Windows of what the other channels do not predict; the regression is part of `Normal`."""

    key: ClassVar[str] = "relation"
    lines: ClassVar[Mapping[str, str]] = {
        "relation": "large residuals of a regression on the other channels"
    }
    windowed = (Windowed(1, (("relation", 0.5),)), Windowed(3, (("relation", 0.5),)))

    @classmethod
    def taught_by(cls, training: Training) -> Sequence[Array]:
        """The residuals that the fit of `Normal` held out."""
        return training.residuals

    def seen(self, scaled: Array) -> Array:
        """What the regression leaves of the rows; it stays as it was fitted."""
        return self.normal.residuals(scaled)
