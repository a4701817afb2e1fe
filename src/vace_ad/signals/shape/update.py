"""Updates the statistics of embeddings with new patches; the encoders stay."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.folds import Fold
from vace_ad.signals.incremental import merged_quantile
from vace_ad.signals.shape.direction import Direction
from vace_ad.signals.shape.evidence import (
    DIRECTION_QUANTILE,
    LEAST_DIRECTION,
    POSITION_QUANTILE,
    EncoderEvidence,
    held_out,
)
from vace_ad.signals.shape.position import Gaussian, MemoryBank, Position, moments
from vace_ad.signals.shape.prototypes import unit

Array = NDArray[np.float64]

# The weight of accepted stretches, however short. The squared distance of what is a share w of a
# Gaussian is 1 / w (1 − w) at most along the way to it: 6, where about 64 is typical.
NAMED = 0.2


def update_encoder(
    evidence: EncoderEvidence,
    embeddings: NDArray[np.float32],  # (n, d_z), of new patches
    named: tuple[NDArray[np.float32], NDArray[np.float32]],  # embeddings and velocities (m, d_z)
    # of accepted stretches
    starts: NDArray[np.intp],  # (n,), rows where the new patches start
    pairs: NDArray[np.intp],  # (n_pairs, 2)
    config: VACEConfig,
    weight: float,
    seed: int,
    executor: Executor,
) -> tuple[EncoderEvidence, list[EncoderEvidence]]:
    """The statistics with new patches, and those without each block of them."""
    moves = np.asarray(embeddings[pairs[:, 1]] - embeddings[pairs[:, 0]])

    def learn(fold: Fold) -> tuple[Position, Direction | None]:
        inside = np.zeros(len(embeddings), bool)
        inside[fold.fit] = True
        own = moves[inside[pairs].all(axis=1)]
        position = _position(evidence.position, embeddings[fold.fit], weight, config, seed)
        return position, _direction(evidence.direction, own, weight, config, seed)

    without, positions, turns = held_out(embeddings, starts, pairs, config, learn, executor)
    position = _position(evidence.position, embeddings, weight, config, seed)
    direction = _direction(evidence.direction, moves, weight, config, seed)
    if len(named[0]) > 1:
        position = _position(position, named[0], NAMED, config, seed)
        direction = _direction(direction, named[1], NAMED, config, seed)
    position_unit = _unit(evidence.position_unit, positions, weight, POSITION_QUANTILE)
    unit, median = evidence.direction_unit, evidence.direction_median
    if len(turns):
        unit = max(_unit(unit, turns, weight, DIRECTION_QUANTILE), LEAST_DIRECTION)
        median = (1 - weight) * median + weight * float(np.median(turns))
    units = position_unit, unit, median
    merged = EncoderEvidence(position, direction, *units)
    return merged, [EncoderEvidence(*each, *units) for each in without]


def _unit(old: float, new: Array, weight: float, quantile: float) -> float:
    return float(merged_quantile(np.array([old]), new[:, None], weight, quantile)[0])


def _position(
    old: Position, embeddings: NDArray[np.float32], weight: float, config: VACEConfig, seed: int
) -> Position:
    """Gaussians by their moments; banks side by side."""
    if isinstance(old, MemoryBank):
        return MemoryBank(np.concatenate([old.bank, MemoryBank.fit(embeddings, seed).bank]))
    assert isinstance(old, Gaussian)
    epsilon = config.reproduction.regularisation
    inverse = np.linalg.inv(old.whitening)  # Σ + εI = (W Wᵀ)⁻¹
    before = inverse.T @ inverse - epsilon * np.eye(len(old.mean))
    mean, values, vectors = moments(embeddings)
    whole = (1 - weight) * old.mean + weight * mean
    covariance = (1 - weight) * (before + np.outer(old.mean - whole, old.mean - whole))
    covariance += weight * ((vectors * values) @ vectors.T + np.outer(mean - whole, mean - whole))
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return Gaussian(whole, vectors / np.sqrt(np.maximum(values, 0) + epsilon), old.root)


def _direction(
    old: Direction | None, moves: NDArray[np.float32], weight: float, config: VACEConfig, seed: int
) -> Direction | None:
    """Prototypes of new velocities beside the old ones, as many as is their share."""
    if old is None or not len(moves):
        return old
    size = round(len(old.prototypes) * weight / (1 - weight))
    size = max(1, min(size, len(moves) // 2))
    paper = config.reproduction
    chosen = seed if paper.prototype_seed is None else paper.prototype_seed
    new = Direction.fit(moves, size, old.neighbours, chosen, paper.prototype_method)
    every = np.concatenate([old.prototypes, new.prototypes])
    most = 2 * paper.prototypes
    if len(every) > most:  # evenly thinned: old and new alike
        every = every[np.linspace(0, len(every) - 1, most).round().astype(np.intp)]
    return Direction(unit(every), old.neighbours)


def joined(
    parts: Sequence[tuple[NDArray[np.float32], NDArray[np.intp]]], size: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Embeddings and velocities (m, size) of several stretches, each with its pairs; also none."""
    none = np.empty((0, size), np.float32)
    moves = [z[pairs[:, 1]] - z[pairs[:, 0]] for z, pairs in parts]
    return np.concatenate([none, *(z for z, _ in parts)]), np.concatenate([none, *moves])
