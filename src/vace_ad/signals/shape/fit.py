"""Fits the shape signal: encoders first, then the statistics of their embeddings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import Engine
from vace_ad.engine.batch_norm import calibrate
from vace_ad.engine.encoder import Encoder, init_encoder
from vace_ad.engine.patches import PatchSet
from vace_ad.engine.trajectory import embed, training_stride, velocity_pairs, workers
from vace_ad.errors import VaceWarning
from vace_ad.progress import Progress, silent
from vace_ad.signals.shape.evidence import EncoderEvidence
from vace_ad.signals.shape.geometry import Geometry
from vace_ad.signals.shape.position import moments

CALIBRATION_PATCHES = 256  # that BatchNorm is calibrated on


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
        from vace_ad.training.pretext import has_triples, train

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
