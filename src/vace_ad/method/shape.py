"""Shape evidence: position and direction of each encoder, composed and averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import Engine
from vace_ad.method.compose import compose, normalised, training_unit
from vace_ad.method.direction import Direction
from vace_ad.method.patches import PatchSet
from vace_ad.method.position import Gaussian, MemoryBank, Position
from vace_ad.method.trajectory import embed
from vace_ad.progress import Progress, silent


class Signals(NamedTuple):
    """The two signals of each encoder at each patch on the grid, as they come."""

    position: NDArray[np.float64]  # (n_encoders, n_grid)
    direction: NDArray[np.float64]  # (n_encoders, n_grid); NaN where a patch has no velocity


@dataclass(frozen=True)
class EncoderEvidence:
    """What one encoder learned about training: where embeddings lie, where they move, scales."""

    position: Position
    direction: Direction | None
    position_unit: float
    direction_unit: float
    direction_median: float

    @classmethod
    def fit(
        cls,
        embeddings: NDArray[np.float32],  # (n, d_z)
        pairs: NDArray[np.intp],  # (n_pairs, 2)
        config: VACEConfig,
        seed: int,
    ) -> EncoderEvidence:
        """Statistics of the training embeddings of one encoder."""
        position: Position
        if config.position == "mahalanobis":
            root = config.position_distance == "root"
            position = Gaussian.fit(embeddings, config.regularisation, root)
        else:
            position = MemoryBank.fit(embeddings, seed)
        position_unit = training_unit(position.score(embeddings))
        if not config.direction:
            return cls(position, None, position_unit, 1.0, 0.0)
        moves = embeddings[pairs[:, 1]] - embeddings[pairs[:, 0]]
        size = max(1, min(config.prototypes, round(config.prototype_share * len(embeddings))))
        chosen = config.prototype_seed if config.prototype_seed is not None else seed
        direction = Direction.fit(moves, size, config.prototype_neighbours, chosen)
        scores = direction.score(moves)
        return cls(
            position, direction, position_unit, training_unit(scores), float(np.median(scores))
        )


@dataclass(frozen=True)
class Shape:
    """The evidence of all encoders."""

    encoders: tuple[EncoderEvidence, ...]
    config: VACEConfig

    def signals(self, engine: Engine, patches: PatchSet, progress: Progress = silent) -> Signals:
        """Both signals along one stretch; each patch on the grid is embedded once."""
        config = self.config
        index = patches.grid(config.stride)
        lag = config.offset // config.stride if config.direction else 0
        position = np.empty((len(self.encoders), len(index)))
        direction = np.full((len(self.encoders), len(index)), np.nan)
        recent = np.empty((0, len(self.encoders), config.embedding_size), np.float32)
        done = 0
        for block in embed(engine, patches, index, progress, "scoring"):
            recent = np.concatenate([recent, block])  # the last `lag` embeddings, then the block
            moves = recent[lag:] - recent[: len(recent) - lag] if lag else recent[:0]
            upto = done + len(block)
            ends = slice(upto - len(moves), upto)  # patches at which these velocities end
            at = ends if config.velocity == "backward" else slice(ends.start - lag, upto - lag)
            for e, evidence in enumerate(self.encoders):
                position[e, done:upto] = evidence.position.score(block[:, e])
                if evidence.direction is not None and len(moves):
                    direction[e, at] = evidence.direction.score(moves[:, e])
            recent = recent[len(recent) - lag :] if lag < len(recent) else recent
            done = upto
        return Signals(position, direction)

    def composed(self, signals: Signals) -> NDArray[np.float64]:
        """The mean over encoders of s̃_p · (1 + w · s̃_d), (n_grid,)."""
        how, weight = self.config.normalisation, self.config.direction_weight
        complete = self.complete(signals) if self.config.direction else None
        total = np.zeros(signals.position.shape[1])
        for e, evidence in enumerate(self.encoders):
            position = normalised(signals.position[e], how, evidence.position_unit)
            direction = None
            if complete is not None:
                direction = normalised(complete[e], how, evidence.direction_unit)
            total += compose(position, direction, weight)
        return total / len(self.encoders)

    def complete(self, signals: Signals) -> NDArray[np.float64]:
        """Direction with a value also for the patches that have no velocity."""
        direction = signals.direction.copy()
        for e, evidence in enumerate(self.encoders):
            missing = np.isnan(direction[e])
            known = evidence.direction_median
            if self.config.missing_direction == "mean" and not missing.all():
                known = float(direction[e, ~missing].mean())
            direction[e, missing] = known
        return direction
