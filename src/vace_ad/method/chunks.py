"""The signals of a series that comes in chunks of any size, in memory that does not grow.

Rows are worked off in blocks whose borders depend on the series alone, never on how it was cut
into chunks, so every chunk size gives the same bits. A row's signals come out once all patches
that cover it have been scored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import Engine
from vace_ad.errors import ConfigError
from vace_ad.frames.gaps import run_edges
from vace_ad.method.amplitude import SIGNALS, Amplitude, Envelope, State, Used, signals
from vace_ad.method.patches import PatchSet
from vace_ad.method.relation import BLOCK as TOGETHER
from vace_ad.method.relation import Relation
from vace_ad.method.rolling import GapFiller, InStep, RowBuffer, WindowMeans
from vace_ad.method.shape import Shape, Signals, Walk
from vace_ad.method.spikes import REACH, Spikes, stand_out
from vace_ad.method.trajectory import BLOCK, embed

Array = NDArray[np.float64]


class ShapeRows:
    """Position and direction along one stretch."""

    def __init__(self, shape: Shape, engine: Engine, scale: Array, block: int) -> None:
        config = shape.config
        self._shape, self._engine, self._scale, self._block = shape, engine, scale, block
        self._rows = RowBuffer()
        self._walk = Walk(shape)
        self._means = WindowMeans(config.patch_length, config.grid_stride, 2)

    def add(self, rows: Array) -> Array:
        """The rows (2, m) that are complete after these."""
        self._rows.add(rows)
        config = self._shape.config
        needed = (self._block - 1) * config.grid_stride + config.patch_length
        done = [np.empty((2, 0))]
        while len(self._rows) >= needed:
            done += self._patches(self._rows.first(needed))
            self._rows.drop(self._block * config.grid_stride)
        return np.concatenate(done, axis=1)

    def finish(self, n_rows: int) -> Array:
        """The rows that are left of a stretch of `n_rows`."""
        done = []
        if len(self._rows) >= self._shape.config.patch_length:
            done += self._patches(self._rows.first(len(self._rows)))
        done += self._compose(self._walk.finish())
        return np.concatenate([*done, self._means.finish(n_rows)], axis=1)

    def _patches(self, rows: Array) -> list[Array]:
        """Embed and score the patches on the grid of these rows."""
        config = self._shape.config
        patches = PatchSet([rows], config.patch_length, self._scale)
        found = embed(self._engine, patches, patches.grid(config.grid_stride))
        return self._compose(self._walk.add(np.concatenate(list(found))))

    def _compose(self, signals: Signals) -> list[Array]:
        """The rows that these patches complete, if there are any."""
        if signals.position.shape[1] == 0:
            return []
        return [self._means.add(np.stack(self._shape.composed(signals)))]


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


class ChunkSignals:
    """All signals of a series that comes in chunks, in the order of `VACE.signals`.

    `block` is the number of patches scored at a time: a smaller one gives scores sooner, but
    other last bits.
    """

    def __init__(
        self,
        shape: Shape,
        amplitude: Amplitude | None,
        engine: Engine,
        scale: Array,  # (n_channels,)
        *,
        used: Used | None = None,
        block: int = BLOCK,
    ) -> None:
        check_chunks(shape.config)
        self._shape, self._amplitude, self._engine = shape, amplitude, engine
        self._scale, self._block = scale, block
        self._filler = GapFiller(shape.config.max_gap, len(scale))
        self._used = used or (amplitude.start() if amplitude else None)
        self._begin()

    def add(self, rows: Array) -> Array:
        """The signals (6, m) of the rows that are complete after these (n, n_channels)."""
        return self._split(self._filler.add(rows))

    def finish(self) -> Array:
        """The signals (6, m) of the rows that are left."""
        rest = self._split(self._filler.finish())
        return np.concatenate([rest, self._end()], axis=1)

    def _split(self, rows: Array) -> Array:
        """Work off rows with NaN where a gap is."""
        whole = np.asarray(~np.isnan(rows).any(axis=1))
        done = [np.empty((6, 0))]
        at = 0
        for a, b in run_edges(whole).tolist():
            if a > at:
                done += [self._end(), np.full((6, a - at), np.nan)]
            done.append(self._extend(rows[a:b]))
            at = b
        if at < len(rows):
            done += [self._end(), np.full((6, len(rows) - at), np.nan)]
        return np.concatenate(done, axis=1)

    def _begin(self) -> None:
        """A new stretch."""
        self._n = 0
        self._first = RowBuffer()  # rows of a stretch that is not yet as long as a patch
        self._shape_rows = ShapeRows(self._shape, self._engine, self._scale, self._block)
        self._in_step = InStep(1)
        if self._amplitude and self._used:
            amplitude, used = self._amplitude, self._used
            self._envelope_rows = self._along(amplitude.envelopes, used.windows)
            self._spike_rows = SpikeRows(amplitude.spikes, used.spikes, amplitude.half_life)
            self._residual_rows = ResidualRows(amplitude.relation)
            self._related_rows = self._along(amplitude.relation_envelopes, used.relation)
            self._in_step = InStep(2 + len(self._envelope_rows) + len(self._related_rows))

    def _along(self, envelopes: Sequence[Envelope], states: Sequence[State]) -> list[EnvelopeRows]:
        assert self._amplitude
        half_life, pairs = self._amplitude.half_life, zip(envelopes, states, strict=True)
        return [EnvelopeRows(*pair, half_life, self._block) for pair in pairs]

    def _extend(self, rows: Array) -> Array:
        self._n += len(rows)
        self._first.add(rows)
        if self._n < self._shape.config.patch_length:
            return np.empty((6, 0))
        rows = self._first.first(len(self._first))
        self._first = RowBuffer()
        parts = [self._shape_rows.add(rows)]
        if self._amplitude:
            scaled = self._amplitude.channels.scaled(rows)
            parts += [envelope.add(scaled) for envelope in self._envelope_rows]
            parts.append(self._spike_rows.add(scaled))
            residuals = self._residual_rows.add(scaled)
            parts += [related.add(residuals) for related in self._related_rows]
        return self._joined(parts)

    def _end(self) -> Array:
        """Finish the stretch, if there is one; too short a one has no signals."""
        n = self._n
        if n < self._shape.config.patch_length:
            self._begin()
            return np.full((6, n), np.nan)
        parts = [self._shape_rows.finish(n)]
        if self._amplitude:
            finished = [envelope.finish(n) for envelope in self._envelope_rows]
            spike, spikes = self._spike_rows.finish()
            residuals = self._residual_rows.finish()
            last = [related.add(residuals) for related in self._related_rows]
            related = [each.finish(n) for each in self._related_rows]
            parts += [rows for rows, _ in finished] + [spike]
            parts += [
                np.concatenate([rows, rest], axis=1)
                for rows, (rest, _) in zip(last, related, strict=True)
            ]
            windows, relation = (tuple(s for _, s in each) for each in (finished, related))
            self._used = Used(windows, spikes, relation)
        done = self._joined(parts)
        self._begin()
        return done

    def _joined(self, parts: Sequence[Array]) -> Array:
        """The signals (6, m) of the rows that all parts have reached."""
        shape, *amplitude = self._in_step.add(parts)
        if not amplitude:
            return np.concatenate([shape, np.zeros((len(SIGNALS), shape.shape[1]))])
        n = len(self._envelope_rows)
        return np.concatenate([shape, signals(amplitude[:n], amplitude[n], amplitude[n + 1 :])])


def check_chunks(config: VACEConfig) -> None:
    """Refuse settings under which a row's score depends on the whole scored series."""
    for name in ("normalisation", "missing_direction"):
        value = getattr(config, name)
        if value != "training":
            raise ConfigError(
                f"{name}={value!r} looks at the whole scored series, so it cannot be scored in "
                f"chunks; use {name}='training', or pass one table"
            )
