"""Shape evidence: position and direction of each encoder, composed and averaged."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import Engine
from vace_ad.method.compose import TINY, compose, compose_log, over_the_set
from vace_ad.method.direction import Direction
from vace_ad.method.folds import Fold, contiguous_folds
from vace_ad.method.patches import PatchSet
from vace_ad.method.position import Gaussian, MemoryBank, Position
from vace_ad.method.trajectory import embed
from vace_ad.progress import Progress, silent

Array = NDArray[np.float64]
POSITION_QUANTILE, DIRECTION_QUANTILE = 0.9, 0.99  # of held-out training scores: their units
LEAST_DIRECTION = 1e-3  # unit of direction where training hardly turns


class Signals(NamedTuple):
    """The two signals of each encoder at each patch on the grid, as they come."""

    position: Array  # (n_encoders, n_grid)
    direction: Array  # (n_encoders, n_grid); NaN where a patch has no velocity

    @classmethod
    def joined(cls, parts: list[Signals]) -> Signals:
        """The signals of several stretches, end to end."""
        return cls(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))


class Parts(NamedTuple):
    """Composed evidence (n_grid,): that of position alone, and what direction adds."""

    position: Array
    direction: Array


@dataclass(frozen=True)
class EncoderEvidence:
    """What one encoder learned about training: where embeddings lie, where they move, units."""

    position: Position
    direction: Direction | None
    position_unit: float
    direction_unit: float
    direction_median: float

    @classmethod
    def fit(
        cls,
        embeddings: NDArray[np.float32],  # (n, d_z)
        starts: NDArray[np.intp],  # (n,), rows where their patches start
        pairs: NDArray[np.intp],  # (n_pairs, 2)
        n_patches: int,  # of training in all, of which these are some
        config: VACEConfig,
        seed: int,
        executor: Executor,
    ) -> tuple[EncoderEvidence, Array, Array]:
        """Statistics of training embeddings, and both signals of each, held out, (n,)."""
        most = max(1, min(config.prototypes, round(config.prototype_share * n_patches)))
        whole = executor.submit(_statistics, embeddings, pairs, most, config, seed)
        at = pairs[:, 1 if config.velocity == "backward" else 0]  # patch that owns a velocity

        def hold_out(fold: Fold) -> tuple[Array, Array]:
            fitted, is_held = np.zeros((2, len(embeddings)), bool)
            fitted[fold.fit], is_held[fold.held] = True, True
            own = pairs[fitted[pairs].all(axis=1)]
            own = own if len(own) else pairs
            position, direction = _statistics(embeddings, own, most, config, seed, fold.fit)
            turns = np.full(len(embeddings), np.nan)
            chosen = is_held[at]
            if direction is not None and chosen.any():
                turns[at[chosen]] = direction.score(_moves(embeddings, pairs[chosen]))
            return position.score(embeddings[fold.held]), turns[fold.held]

        parts = executor.map(hold_out, contiguous_folds(starts, config.patch_length))
        held_position, held_direction = (np.concatenate(part) for part in zip(*parts, strict=True))
        position, direction = whole.result()
        position_unit = max(float(np.quantile(held_position, POSITION_QUANTILE)), TINY)
        known = held_direction[~np.isnan(held_direction)]
        unit, median = 1.0, 0.0
        if len(known):
            unit = max(float(np.quantile(known, DIRECTION_QUANTILE)), LEAST_DIRECTION)
            median = float(np.median(known))
        evidence = cls(position, direction, position_unit, unit, median)
        return evidence, held_position, held_direction


def _statistics(
    embeddings: NDArray[np.float32],
    pairs: NDArray[np.intp],
    most: int,
    config: VACEConfig,
    seed: int,
    fit: NDArray[np.intp] | slice = slice(None),
) -> tuple[Position, Direction | None]:
    """Position from the embeddings at `fit`, direction from the pairs with `most` prototypes."""
    position: Position
    if config.position == "mahalanobis":
        root = config.position_distance == "root"
        position = Gaussian.fit(embeddings[fit], config.regularisation, root)
    else:
        position = MemoryBank.fit(embeddings[fit], seed)
    if not config.direction:
        return position, None
    moves = _moves(embeddings, pairs)
    size = max(1, min(most, len(moves) // 2))  # a prototype stands for two velocities at least
    chosen = config.prototype_seed if config.prototype_seed is not None else seed
    return position, Direction.fit(
        moves, size, config.prototype_neighbours, chosen, config.prototype_method
    )


def _moves(embeddings: NDArray[np.float32], pairs: NDArray[np.intp]) -> NDArray[np.float32]:
    return np.asarray(embeddings[pairs[:, 1]] - embeddings[pairs[:, 0]])


@dataclass(frozen=True)
class Shape:
    """The evidence of all encoders."""

    encoders: tuple[EncoderEvidence, ...]
    config: VACEConfig

    def signals(self, engine: Engine, patches: PatchSet, progress: Progress = silent) -> Signals:
        """Both signals along one stretch; each patch on the grid is embedded once."""
        walk = Walk(self)
        index = patches.grid(self.config.grid_stride)
        parts = [walk.add(block) for block in embed(engine, patches, index, progress, "scoring")]
        return Signals.joined([*parts, walk.finish()])

    def composed(self, signals: Signals) -> Parts:
        """The mean evidence of the encoders."""
        weight, how = self.config.direction_weight, self.config.normalisation
        complete = self.complete(signals) if self.config.direction else None
        totals = np.zeros((2, signals.position.shape[1]))
        for e, evidence in enumerate(self.encoders):
            position = signals.position[e]
            direction = None if complete is None else complete[e]
            if how == "training":
                position = position / evidence.position_unit
                if direction is not None:
                    direction = direction / evidence.direction_unit
                totals += compose_log(position, direction, weight)
            else:
                position = over_the_set(position, how)
                if direction is not None:
                    direction = over_the_set(direction, how)
                totals += compose(position, direction, weight)
        return Parts(*(totals / len(self.encoders)))

    def complete(self, signals: Signals) -> Array:
        """Direction with a value also for the patches that have no velocity."""
        direction = signals.direction.copy()
        for e, evidence in enumerate(self.encoders):
            missing = np.isnan(direction[e])
            known = evidence.direction_median
            if self.config.missing_direction == "mean" and not missing.all():
                known = float(direction[e, ~missing].mean())
            direction[e, missing] = known
        return direction


class Walk:
    """The signals along one stretch, whose embeddings on the grid come in blocks."""

    def __init__(self, shape: Shape) -> None:
        config = shape.config
        self._shape = shape
        self._lag = config.offset // config.grid_stride
        size = (0, len(shape.encoders), config.embedding_size)
        self._recent = np.empty(size, np.float32)  # embeddings that a velocity may start at
        self._lone = np.empty((len(shape.encoders), 0))  # positions whose velocity is to come

    def add(self, block: NDArray[np.float32]) -> Signals:
        """The signals of the patches that are complete after these, (n, n_encoders, d_z)."""
        config, encoders = self._shape.config, self._shape.encoders
        position = np.stack([e.position.score(block[:, k]) for k, e in enumerate(encoders)])
        if not config.direction:
            return Signals(position, np.full_like(position, np.nan))
        recent = np.concatenate([self._recent, block])
        starts = recent[: max(0, len(recent) - self._lag)]
        moves = recent[self._lag :] - starts
        self._recent = recent[len(starts) :]
        direction = np.empty((len(encoders), len(moves)))
        for k, evidence in enumerate(encoders):
            if evidence.direction is not None and len(moves):
                direction[k] = evidence.direction.score(moves[:, k])
        if config.velocity == "forward":
            self._lone = np.concatenate([self._lone, position], axis=1)
            position, self._lone = np.split(self._lone, [len(moves)], axis=1)
        else:
            first = np.full((len(encoders), len(block) - len(moves)), np.nan)
            direction = np.concatenate([first, direction], axis=1)
        return Signals(position, direction)

    def finish(self) -> Signals:
        """The signals of the last patches, which have no velocity."""
        return Signals(self._lone, np.full_like(self._lone, np.nan))
