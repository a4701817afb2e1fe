"""Fits the shape signal: encoders first, then the statistics of their embeddings. Updates it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import Engine, workers
from vace_ad.engine.encoder import Encoder, calibrate, init_encoder
from vace_ad.engine.patches import PatchSet, embed, training_stride, velocity_pairs
from vace_ad.errors import VaceWarning
from vace_ad.progress import Progress, silent
from vace_ad.signals.baseline_model import Fold
from vace_ad.signals.incremental import merged_quantile
from vace_ad.signals.shape.embeddings import (
    Direction,
    Gaussian,
    Geometry,
    MemoryBank,
    Position,
    moments,
    unit,
)
from vace_ad.signals.shape.evidence import (
    DIRECTION_QUANTILE,
    LEAST_DIRECTION,
    POSITION_QUANTILE,
    EncoderEvidence,
    held_out,
)

CALIBRATION_PATCHES = 256  # that BatchNorm is calibrated on
Array = NDArray[np.float64]

# The weight of accepted stretches, however short. The squared distance of what is a share w of a
# Gaussian is 1 / w (1 − w) at most along the way to it: 6, where about 64 is typical.
NAMED = 0.2


def encoder_rngs(config: VACEConfig) -> list[np.random.Generator]:
    """A source of randomness for each encoder, whatever their number."""
    seeds = np.random.SeedSequence(config.random_state).spawn(config.encoders)
    return [np.random.default_rng(seed) for seed in seeds]


def learn_encoder(
    patches: PatchSet, config: VACEConfig, rng: np.random.Generator, progress: Progress = silent
) -> tuple[Encoder, list[float]]:
    """An encoder from its random start to calibrated BatchNorm, and the pretext's losses."""
    encoder = init_encoder(config, patches.n_channels, rng)
    losses: list[float] = []
    if config.reproduction.iterations:
        from vace_ad.signals.shape.pretext import has_triples, train

        if not has_triples(patches, config):
            warnings.warn(
                f"no stretch of training rows holds patches {config.training_offset} rows "
                "before and after another, so nothing is trained but BatchNorm; more rows or "
                "a smaller patch_length would train the encoder",
                VaceWarning,
                stacklevel=3,
            )
        encoder, losses = train(encoder, patches, config, rng, progress)
    if config.reproduction.batch_norm and config.reproduction.batch_norm_statistics == "calibrated":
        encoder = calibrated(encoder, patches, config.reproduction.batch_norm_blend)
    return encoder, losses


def calibrated(encoder: Encoder, patches: PatchSet, blend: float) -> Encoder:
    """The encoder with BatchNorm statistics of evenly spaced patches, blended with (0, 1)."""
    chosen = np.linspace(0, len(patches) - 1, min(CALIBRATION_PATCHES, len(patches)))
    return calibrate(encoder, patches.gather(chosen.astype(np.intp)), blend)


class Embedded(NamedTuple):
    """The training patches that enter the statistics."""

    numbers: NDArray[np.intp]  # (n,): every `stride`-th of each stretch
    stride: int
    embeddings: NDArray[np.float32]  # (n, n_encoders, d_z)


def embed_training(
    engine: Engine, patches: PatchSet, config: VACEConfig, progress: Progress = silent
) -> Embedded:
    """Embed every patch that is to enter the statistics, once."""
    stride = training_stride(
        len(patches), config.offset, config.reproduction.fit_stride, config.max_fit_patches
    )
    numbers = patches.grid(stride)
    blocks = embed(engine, patches, numbers, progress, "embedding")
    return Embedded(numbers, stride, np.concatenate(list(blocks)))


class Statistics(NamedTuple):
    """What the embeddings taught."""

    encoders: tuple[EncoderEvidence, ...]
    geometry: Geometry
    without: list[tuple[EncoderEvidence, ...]]  # the encoders without each block of rows


def learn_statistics(
    embedded: Embedded, patches: PatchSet, config: VACEConfig, seeds: Sequence[int]
) -> Statistics:
    """Position, direction and units of each encoder; `seeds` are those of its prototypes."""
    numbers, _, embeddings = embedded
    pairs = velocity_pairs(patches, numbers, config.offset)
    starts = patches.rows(numbers)

    with workers() as executor:
        fitted = [
            EncoderEvidence.fit(z, starts, pairs, len(patches), config, seed, executor)
            for z, seed in zip(embeddings.swapaxes(0, 1), seeds, strict=True)
        ]
    spectra = [moments(embeddings[:, e])[1] for e in range(config.encoders)]
    geometry = Geometry.of(spectra, config.reproduction.active_dimension)
    without = list(zip(*(each for _, each in fitted), strict=True))
    return Statistics(tuple(evidence for evidence, _ in fitted), geometry, without)


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
