"""What one encoder learned about training: where embeddings lie, where they move, and units.

Composition: s = s̃_p · (1 + w · s̃_d), each signal in a unit of its own.

What is returned are two parts that add up to s: that of position alone, and what direction adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.baseline_model import Fold, contiguous_folds
from vace_ad.signals.shape.embeddings import Direction, Gaussian, MemoryBank, Position

Scores = NDArray[np.float64]
TINY = 1e-12  # keeps a signal that never varied from dividing by zero


def over_the_set(scores: Scores, how: str) -> Scores:
    """A signal as its z-score or min–max position over the scored set."""
    if how == "zscore":
        return np.asarray((scores - scores.mean()) / max(float(scores.std()), TINY))
    low, high = scores.min(), scores.max()
    return np.asarray((scores - low) / max(float(high - low), TINY))


def compose(position: Scores, direction: Scores | None, weight: float) -> tuple[Scores, Scores]:
    """s̃_p, and s̃_p · w · s̃_d."""
    return position, np.zeros_like(position) if direction is None else position * weight * direction


def compose_log(position: Scores, direction: Scores | None, weight: float) -> tuple[Scores, Scores]:
    """log(1 + s̃_p), and what log(1 + s̃_p · (1 + w · s̃_d)) adds to it.

    On a log scale no single encoder, and no single patch, can drown the others.
    """
    alone = np.log1p(position)
    if direction is None:
        return alone, np.zeros_like(alone)
    return alone, np.log1p(position * (1 + weight * direction)) - alone


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
    ) -> tuple[EncoderEvidence, list[EncoderEvidence]]:
        """Statistics of training embeddings, and those without each block of them."""
        most = max(
            1,
            min(
                config.reproduction.prototypes,
                round(config.reproduction.prototype_share * n_patches),
            ),
        )
        whole = executor.submit(_statistics, embeddings, pairs, most, config, seed)

        def learn(fold: Fold) -> tuple[Position, Direction | None]:
            inside = np.zeros(len(embeddings), bool)
            inside[fold.fit] = True
            own = pairs[inside[pairs].all(axis=1)]
            own = own if len(own) else pairs
            return _statistics(embeddings, own, most, config, seed, fold.fit)

        without, positions, turns = held_out(embeddings, starts, pairs, config, learn, executor)
        unit, median = 1.0, 0.0
        if len(turns):
            unit = max(float(np.quantile(turns, DIRECTION_QUANTILE)), LEAST_DIRECTION)
            median = float(np.median(turns))
        units = max(float(np.quantile(positions, POSITION_QUANTILE)), TINY), unit, median
        return cls(*whole.result(), *units), [cls(*each, *units) for each in without]


def held_out(
    embeddings: NDArray[np.float32],  # (n, d_z)
    starts: NDArray[np.intp],  # (n,), rows where their patches start
    pairs: NDArray[np.intp],  # (n_pairs, 2)
    config: VACEConfig,
    learn: Callable[[Fold], tuple[Position, Direction | None]],
    executor: Executor,
) -> tuple[list[tuple[Position, Direction | None]], Array, Array]:
    """What `learn` gives for each fold, and both signals of patches by what did not see them.

    Positions (n,), and the directions of those patches that have one.
    """
    owner = pairs[:, 1 if config.reproduction.velocity == "backward" else 0]  # of a velocity

    def hold_out(fold: Fold) -> tuple[tuple[Position, Direction | None], Array, Array]:
        position, direction = learned = learn(fold)
        own = np.isin(owner, fold.held)
        turns = np.empty(0)
        if direction is not None and own.any():
            turns = direction.score(_moves(embeddings, pairs[own]))
        return learned, position.score(embeddings[fold.held]), turns

    done = list(executor.map(hold_out, contiguous_folds(starts, config.length)))
    positions, turns = (np.concatenate([each[k] for each in done]) for k in (1, 2))
    return [each[0] for each in done], positions, turns


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
    if config.reproduction.position == "mahalanobis":
        root = config.reproduction.position_distance == "root"
        position = Gaussian.fit(embeddings[fit], config.reproduction.regularisation, root)
    else:
        position = MemoryBank.fit(embeddings[fit], seed)
    if not config.reproduction.direction:
        return position, None
    moves = _moves(embeddings, pairs)
    size = max(1, min(most, len(moves) // 2))  # a prototype stands for two velocities at least
    chosen = (
        config.reproduction.prototype_seed
        if config.reproduction.prototype_seed is not None
        else seed
    )
    return position, Direction.fit(
        moves,
        size,
        config.reproduction.prototype_neighbours,
        chosen,
        config.reproduction.prototype_method,
    )


def _moves(embeddings: NDArray[np.float32], pairs: NDArray[np.intp]) -> NDArray[np.float32]:
    return np.asarray(embeddings[pairs[:, 1]] - embeddings[pairs[:, 0]])


def composed(encoders: Sequence[EncoderEvidence], signals: Signals, config: VACEConfig) -> Array:
    """The mean evidence of the encoders, (2, n_grid): of position, and what direction adds."""
    paper = config.reproduction
    complete = with_direction(encoders, signals, config) if paper.direction else None
    totals = np.zeros((2, signals.position.shape[1]))
    for e, evidence in enumerate(encoders):
        position = signals.position[e]
        direction = None if complete is None else complete[e]
        if paper.normalisation == "training":
            position = position / evidence.position_unit
            if direction is not None:
                direction = direction / evidence.direction_unit
            totals += compose_log(position, direction, paper.direction_weight)
        else:
            position = over_the_set(position, paper.normalisation)
            if direction is not None:
                direction = over_the_set(direction, paper.normalisation)
            totals += compose(position, direction, paper.direction_weight)
    return totals / len(encoders)


def with_direction(
    encoders: Sequence[EncoderEvidence], signals: Signals, config: VACEConfig
) -> Array:
    """Direction with a value also for the patches that have no velocity, (n_encoders, n_grid)."""
    direction = signals.direction.copy()
    for e, evidence in enumerate(encoders):
        missing = np.isnan(direction[e])
        known = evidence.direction_median
        if config.reproduction.missing_direction == "mean" and not missing.all():
            known = float(direction[e, ~missing].mean())
        direction[e, missing] = known
    return direction
