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
from vace_ad.method.amplitude import SIGNALS, Amplitude
from vace_ad.method.amplitude_chunks import AmplitudeRows
from vace_ad.method.patches import PatchSet
from vace_ad.method.rolling import GapFiller, InStep, RowBuffer, WindowMeans
from vace_ad.method.shape import Parts, Shape, Signals, Walk
from vace_ad.method.trajectory import BLOCK, embed

Array = NDArray[np.float64]
LINES = len(Parts._fields) + len(SIGNALS)


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
        block: int = BLOCK,
    ) -> None:
        check_chunks(shape.config)
        self._shape, self._amplitude, self._engine = shape, amplitude, engine
        self._scale, self._block = scale, block
        self._filler = GapFiller(shape.config.max_gap, len(scale))
        self._used = amplitude.start() if amplitude else None
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
        done = [np.empty((LINES, 0))]
        at = 0
        for a, b in run_edges(whole).tolist():
            if a > at:
                done += [self._end(), np.full((LINES, a - at), np.nan)]
            done.append(self._extend(rows[a:b]))
            at = b
        if at < len(rows):
            done += [self._end(), np.full((LINES, len(rows) - at), np.nan)]
        return np.concatenate(done, axis=1)

    def _begin(self) -> None:
        """A new stretch."""
        self._n = 0
        self._first = RowBuffer()  # rows of a stretch that is not yet as long as a patch
        self._shape_rows = ShapeRows(self._shape, self._engine, self._scale, self._block)
        self._amplitude_rows = None
        if self._amplitude and self._used:
            self._amplitude_rows = AmplitudeRows(self._amplitude, self._used, self._block)
        self._in_step = InStep(2 if self._amplitude_rows else 1)

    def _extend(self, rows: Array) -> Array:
        self._n += len(rows)
        self._first.add(rows)
        if self._n < self._shape.config.patch_length:
            return np.empty((LINES, 0))
        rows = self._first.first(len(self._first))
        self._first = RowBuffer()
        parts = [self._shape_rows.add(rows)]
        if self._amplitude_rows:
            parts.append(self._amplitude_rows.add(rows))
        return self._joined(parts)

    def _end(self) -> Array:
        """Finish the stretch, if there is one; too short a one has no signals."""
        n = self._n
        if n < self._shape.config.patch_length:
            self._begin()
            return np.full((LINES, n), np.nan)
        parts = [self._shape_rows.finish(n)]
        if self._amplitude_rows:
            rows, self._used = self._amplitude_rows.finish(n)
            parts.append(rows)
        done = self._joined(parts)
        self._begin()
        return done

    def _joined(self, parts: Sequence[Array]) -> Array:
        """The signals (6, m) of the rows that all parts have reached."""
        found = np.concatenate(self._in_step.add(parts))
        silent = np.zeros((LINES - len(found), found.shape[1]))  # without amplitude
        return np.concatenate([found, silent])


def check_chunks(config: VACEConfig) -> None:
    """Refuse settings under which a row's score depends on the whole scored series."""
    for name in ("normalisation", "missing_direction"):
        value = getattr(config, name)
        if value != "training":
            raise ConfigError(
                f"{name}={value!r} looks at the whole scored series, so it cannot be scored in "
                f"chunks; use {name}='training', or pass one table"
            )
