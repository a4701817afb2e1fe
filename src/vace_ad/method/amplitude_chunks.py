"""The amplitude signals of a stretch that comes in chunks: what `Amplitude.evidence` gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vace_ad.method.amplitude import Amplitude, Envelope, State, Used, signals
from vace_ad.method.relation import BLOCK as TOGETHER
from vace_ad.method.relation import Relation
from vace_ad.method.rolling import InStep, RowBuffer, WindowMeans
from vace_ad.method.spikes import REACH, Spikes, stand_out

Array = NDArray[np.float64]


class EnvelopeRows:
    """Level and scale along one stretch, for one window length."""

    def __init__(self, envelope: Envelope, state: State, half_life: float, block: int) -> None:
        self._envelope, self._state, self._half_life = envelope, state, half_life
        self._block = block  # windows at a time; any number gives the same bits
        self._step = envelope.step
        self._rows = RowBuffer()
        self._means = WindowMeans(envelope.window, self._step, 2)

    def add(self, rows: Array) -> Array:
        """The rows (2, m) that are complete after these scaled rows (n, n_channels)."""
        self._rows.add(rows)
        needed = (self._block - 1) * self._step + self._envelope.window
        done = [np.empty((2, 0))]
        while len(self._rows) >= needed:
            done.append(self._windows(self._rows.first(needed)))
            self._rows.drop(self._block * self._step)
        return np.concatenate(done, axis=1)

    def finish(self, n_rows: int) -> tuple[Array, State]:
        """The rows that are left of a stretch of `n_rows`, and what it leaves behind."""
        done = []
        if len(self._rows) >= self._envelope.window:
            done.append(self._windows(self._rows.first(len(self._rows))))
        done.append(self._weighed(self._means.finish(n_rows)))
        return np.concatenate(done, axis=1), self._state

    def _windows(self, rows: Array) -> Array:
        """Evidence of the rows that the windows of these rows complete."""
        sums, self._state = self._envelope.window_sums(rows, self._state, self._half_life)
        return self._weighed(self._means.add(sums))

    def _weighed(self, rows: Array) -> Array:
        evidence, self._state = self._envelope.weigh(rows, self._state, self._half_life)
        return evidence


class SpikeRows:
    """Spikes along one stretch."""

    def __init__(self, spikes: Spikes, used: Array, half_life: float) -> None:
        self._spikes, self._used, self._half_life = spikes, used, half_life
        self._rows = RowBuffer()
        self._given = 0  # rows in the buffer whose evidence has been given out

    def add(self, rows: Array) -> Array:
        """The rows (1, m) that are complete after these scaled rows (n, n_channels)."""
        self._rows.add(rows)
        n = len(self._rows)
        if n - REACH <= self._given:
            return np.empty((1, 0))
        done = self._weighed(n - REACH)
        self._rows.drop(max(0, n - 2 * REACH))
        self._given = len(self._rows) - REACH
        return done

    def finish(self) -> tuple[Array, Array]:
        """The rows that are left of the stretch, and what it leaves behind."""
        return self._weighed(len(self._rows)), self._used

    def _weighed(self, end: int) -> Array:
        """Evidence of the rows of the buffer up to `end` that has not been given out."""
        heights = stand_out(self._rows.first(len(self._rows)))[self._given : end]
        evidence, self._used = self._spikes.weigh(heights, self._used, self._half_life)
        return evidence


class ResidualRows:
    """What other channels do not foretell, along one stretch."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._rows = RowBuffer()

    def add(self, rows: Array) -> Array:
        """The residuals (m, n_channels) that are complete after these scaled rows."""
        self._rows.add(rows)
        return self._taken(len(self._rows) // TOGETHER * TOGETHER)

    def finish(self) -> Array:
        """The residuals that are left."""
        return self._taken(len(self._rows))

    def _taken(self, n: int) -> Array:
        rows = self._rows.first(n)
        done = self._relation.residuals(rows) if n else rows
        self._rows.drop(n)
        return done


class AmplitudeRows:
    """Level, scale, spike and relation along one stretch."""

    def __init__(self, amplitude: Amplitude, used: Used, block: int) -> None:
        half_life = amplitude.half_life

        def along(envelopes: Sequence[Envelope], states: Sequence[State]) -> list[EnvelopeRows]:
            pairs = zip(envelopes, states, strict=True)
            return [EnvelopeRows(*pair, half_life, block) for pair in pairs]

        self._channels = amplitude.channels
        self._windows = along(amplitude.envelopes, used.windows)
        self._spikes = SpikeRows(amplitude.spikes, used.spikes, half_life)
        self._residuals = ResidualRows(amplitude.relation)
        self._related = along(amplitude.relation_envelopes, used.relation)
        self._in_step = InStep(len(self._windows) + 1 + len(self._related))

    def add(self, rows: Array) -> Array:
        """The rows (4, m) that are complete after these."""
        scaled = self._channels.scaled(rows)
        windows = [window.add(scaled) for window in self._windows]
        residuals = self._residuals.add(scaled)
        related = [window.add(residuals) for window in self._related]
        return self._joined([*windows, self._spikes.add(scaled), *related])

    def finish(self, n_rows: int) -> tuple[Array, Used]:
        """The rows that are left of a stretch of `n_rows`, and what it leaves behind."""
        residuals = self._residuals.finish()
        last = [window.add(residuals) for window in self._related]
        windows, related = (
            [window.finish(n_rows) for window in each] for each in (self._windows, self._related)
        )
        spike, spikes = self._spikes.finish()
        rest = [
            np.concatenate([rows, more], axis=1)
            for rows, (more, _) in zip(last, related, strict=True)
        ]
        used = Used(tuple(s for _, s in windows), spikes, tuple(s for _, s in related))
        return self._joined([*(rows for rows, _ in windows), spike, *rest]), used

    def _joined(self, parts: Sequence[Array]) -> Array:
        """The signals of the rows that all parts have reached."""
        n = len(self._windows)
        found = self._in_step.add(parts)
        return signals(found[:n], found[n], found[n + 1 :])
