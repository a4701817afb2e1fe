"""Shape evidence along a stream: patches on a grid, embedded once, and the rows that they cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import EngineSlot
from vace_ad.engine.patches import PatchSet, embed, embed_one
from vace_ad.signals.protocol import Arrays, Evidence, prefixed, under
from vace_ad.signals.row_buffer import RowBuffer, WindowMeans, hold_last, repeated
from vace_ad.signals.shape.evidence import EncoderEvidence, Signals, composed

Array = NDArray[np.float64]
_NOTHING = np.empty((2, 0))


class Walk:
    """The signals along one stretch, whose embeddings on the grid come in blocks."""

    def __init__(self, encoders: Sequence[EncoderEvidence], config: VACEConfig) -> None:
        self._encoders, self._paper = encoders, config.reproduction
        self._lag = config.offset // config.grid_stride
        size = (0, len(encoders), self._paper.embedding_size)
        self._recent = np.empty(size, np.float32)  # embeddings that a velocity may start at
        self._lone = np.empty((len(encoders), 0))  # positions whose velocity is to come

    def add(self, block: NDArray[np.float32]) -> Signals:
        """The signals of the patches that are complete after these, (n, n_encoders, d_z)."""
        encoders = self._encoders
        position = np.stack([e.position.score(block[:, k]) for k, e in enumerate(encoders)])
        if not self._paper.direction:
            return Signals(position, np.full_like(position, np.nan))
        recent = np.concatenate([self._recent, block])
        starts = recent[: max(0, len(recent) - self._lag)]
        moves = recent[self._lag :] - starts
        self._recent = recent[len(starts) :]
        direction = np.empty((len(encoders), len(moves)))
        for k, evidence in enumerate(encoders):
            if evidence.direction is not None and len(moves):
                direction[k] = evidence.direction.score(moves[:, k])
        if self._paper.velocity == "forward":
            self._lone = np.concatenate([self._lone, position], axis=1)
            position, self._lone = np.split(self._lone, [len(moves)], axis=1)
        else:
            first = np.full((len(encoders), len(block) - len(moves)), np.nan)
            direction = np.concatenate([first, direction], axis=1)
        return Signals(position, direction)

    def finish(self) -> Signals:
        """The signals of the last patches, which have no velocity."""
        return Signals(self._lone, np.full_like(self._lone, np.nan))

    def state(self) -> dict[str, NDArray[Any]]:
        """The embeddings and positions that wait."""
        return {"recent": self._recent, "lone": self._lone}

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        self._recent, self._lone = state["recent"], state["lone"]


class ShapeEvidence(Evidence):
    """Position and direction along a stream."""

    def __init__(
        self,
        encoders: Sequence[EncoderEvidence],
        engine: EngineSlot,
        scale: Array,  # (n_channels,)
        weight: float,
        config: VACEConfig,
    ) -> None:
        super().__init__(2)
        self._encoders, self._engine, self._scale, self._config = encoders, engine, scale, config
        self._weight = weight
        self._length, self._stride = config.length, config.grid_stride
        self._begin()

    def _begin(self) -> None:
        config = self._config
        self._n = 0  # rows of the stretch
        self._rows = RowBuffer(len(self._scale))
        self._walk = Walk(self._encoders, config)
        self._means = WindowMeans(self._length, self._stride, 2)
        self._held = np.full((2, 1), np.nan)  # provisional, from the last patch on

    def add(self, rows: Array, scaled: Array | None = None) -> Array:
        """The evidence that is complete after these rows."""
        length, stride, before = self._length, self._stride, self._n
        self._n += len(rows)
        self._rows.add(rows)
        n_patches = (len(self._rows) - length) // stride + 1
        if n_patches <= 0:
            self.now = repeated(self._held, len(rows))
            return _NOTHING
        signals = self._walk.add(self._embedded(self._rows.all, n_patches))
        self._rows.drop(n_patches * stride)
        lines = self._composed(signals)
        if lines.shape[1]:
            # The row that completes each patch; rows from there on hold its evidence.
            last = self._n - (self._n - length) % stride - 1  # of the newest patch
            self.now = hold_last(self._held, lines, last, stride, before, self._n)
            self._held = lines[:, -1:]
        else:
            self.now = repeated(self._held, len(rows))
        return self._spread(lines)

    def _embedded(self, rows: Array, n_patches: int) -> NDArray[np.float32]:
        """Embeddings (n_patches, n_encoders, d_z) of the patches on the grid."""
        engine = self._engine.engine
        if n_patches == 1:
            return embed_one(engine, rows[: self._length], self._scale)
        patches = PatchSet([rows], self._length, self._scale)
        return np.concatenate(list(embed(engine, patches, patches.grid(self._stride))))

    def _composed(self, signals: Signals) -> Array:
        return self._weight * composed(self._encoders, signals, self._config)

    def _spread(self, lines: Array) -> Array:
        """The rows that these patches complete."""
        return self._means.add(lines) if lines.shape[1] else _NOTHING

    def end(self) -> Array:
        """The evidence that is left of the stretch."""
        last = self._spread(self._composed(self._walk.finish()))
        done = np.concatenate([last, self._means.finish(self._n)], axis=1)
        self._begin()
        return done

    def state(self) -> dict[str, NDArray[Any]]:
        """Waiting rows and patches."""
        return {
            "n": np.array([self._n]),
            "held": self._held,
            **prefixed("rows", self._rows.state()),
            **prefixed("walk", self._walk.state()),
            **prefixed("means", self._means.state()),
        }

    def resume(self, state: Arrays) -> None:
        """Take back a state."""
        self._n, self._held = int(state["n"][0]), state["held"]
        self._rows.resume(under("rows", state))
        self._walk.resume(under("walk", state))
        self._means.resume(under("means", state))


class HeldEvidence(ShapeEvidence):
    """The same where signals are normalised over the scored set: all of it comes at the end."""

    def _begin(self) -> None:
        super()._begin()
        if not hasattr(self, "_stretches"):
            # For each stretch its signals and rows; a number alone for rows that were skipped.
            self._stretches: list[tuple[list[Signals], int] | int] = []
        self._found: list[Signals] = []

    def _composed(self, signals: Signals) -> Array:
        self._found.append(signals)
        return np.empty((2, 0))

    def end(self) -> Array:
        """Nothing yet."""
        self._found.append(self._walk.finish())
        self._stretches.append((self._found, self._n))
        self._begin()
        return np.empty((2, 0))

    def skip(self, n: int) -> Array:
        """Nothing yet."""
        self._stretches.append(n)
        return np.empty((2, 0))

    def finish(self) -> Array:
        """Everything, normalised over all stretches."""
        joined = [Signals.joined(each[0]) for each in self._stretches if isinstance(each, tuple)]
        done = [np.empty((2, 0))]
        if joined:
            lines = composed(self._encoders, Signals.joined(joined), self._config)
        for each in self._stretches:
            if isinstance(each, int):
                done.append(super().skip(each))
                continue
            n_grid = sum(part.position.shape[1] for part in each[0])
            means = WindowMeans(self._config.length, self._config.grid_stride, 2)
            done += [means.add(lines[:, :n_grid]), means.finish(each[1])]
            lines = lines[:, n_grid:]
        return np.concatenate(done, axis=1)

    def state(self) -> dict[str, NDArray[Any]]:
        """Refused: such a stream has no rows to give before its end."""
        raise NotImplementedError("a stream that is normalised over its rows cannot be kept")
