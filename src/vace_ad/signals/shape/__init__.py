"""Shape: the paper's evidence. Where a patch's embedding lies, and which way it moves.

One encoder's evidence is s = s̃_p · (1 + w · s̃_d); several are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.engine import EngineSlot, workers
from vace_ad.engine.encoder import Encoder, Norm, Stage, stage_shapes
from vace_ad.engine.patches import FLOOR, PatchSet, embed, velocity_pairs
from vace_ad.errors import InputError, ModelFileError, TooShortError
from vace_ad.frames.table import Table
from vace_ad.progress import Progress, silent
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.incremental import Update
from vace_ad.signals.protocol import (
    Arrays,
    Evidence,
    Fitted,
    Layout,
    Seasonality,
    Signal,
    Training,
    prefixed,
    under,
)
from vace_ad.signals.shape.embeddings import Direction, Gaussian, Geometry, MemoryBank, Position
from vace_ad.signals.shape.evidence import (
    DIRECTION_QUANTILE,
    LEAST_DIRECTION,
    POSITION_QUANTILE,
    EncoderEvidence,
)
from vace_ad.signals.shape.fit import (
    embed_training,
    encoder_rngs,
    joined,
    learn_encoder,
    learn_statistics,
    update_encoder,
)
from vace_ad.signals.shape.stream import HeldEvidence, ShapeEvidence

_NORM = ("gamma", "beta", "mean", "var")
_NUMBERS = ("position_unit", "direction_unit", "direction_median")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shape(Signal):
    """The encoders, what they learned, and who computes with them."""

    key: ClassVar[str] = "shape"
    lines: ClassVar[Mapping[str, str]] = {
        "position": "unusual shape of the curves",
        "direction": "unusual change of the shape of the curves",
    }

    encoders: tuple[Encoder, ...]
    learned: tuple[EncoderEvidence, ...]
    geometry: Geometry
    scale: NDArray[np.float64]  # (n_channels,), unit of the patch normalisation's floor
    weight: float  # by which its evidence counts
    config: VACEConfig
    engine: EngineSlot = field(compare=False, repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def fit(cls, training: Training) -> Fitted | None:
        """Learn the encoders, then the statistics of their embeddings."""
        config, progress = training.config, training.progress
        weight = weight_of(config, training.seasonality)
        if weight == 0:
            return None
        scale = _floor_unit(training.normal, config)
        patches = PatchSet(training.parts, config.length, scale)
        rngs = encoder_rngs(config)
        trained = [learn_encoder(patches, config, rng, progress) for rng in rngs]
        encoders = tuple(encoder for encoder, _ in trained)
        slot = EngineSlot(encoders, len(scale), config)
        embedded = embed_training(slot.engine, patches, config, progress)
        seeds = [int(rng.integers(2**31)) for rng in rngs]
        learned, geometry, without = learn_statistics(embedded, patches, config, seeds)
        facts: dict[str, Any] = {"patches": len(patches), "engine": slot.engine.name}
        if config.reproduction.iterations:
            facts["losses"] = [losses for _, losses in trained]
        signal = cls(encoders, learned, geometry, scale, weight, config, slot, facts)
        return Fitted(signal, [replace(signal, learned=each) for each in without])

    def updated(self, update: Update) -> Fitted:
        """The encoders stay; the statistics of embeddings are those of old and new patches."""
        config, weight = self.config, update.weight
        patches = PatchSet(update.parts, config.length, self.scale)
        embedded = embed_training(self.engine.engine, patches, config, update.progress)
        named = []
        for part in update.accepted:
            own = PatchSet([part], config.length, self.scale)
            z = embed_training(self.engine.engine, own, config)
            named.append((z.embeddings, velocity_pairs(own, z.numbers, config.offset)))
        pairs = velocity_pairs(patches, embedded.numbers, config.offset)
        starts = patches.rows(embedded.numbers)
        with workers() as executor:
            done = [
                update_encoder(
                    evidence,
                    embedded.embeddings[:, e],
                    joined([(z[:, e], own) for z, own in named], embedded.embeddings.shape[2]),
                    starts,
                    pairs,
                    config,
                    weight,
                    config.random_state + e,
                    executor,
                )
                for e, evidence in enumerate(self.learned)
            ]
        signal = replace(self, learned=tuple(evidence for evidence, _ in done))
        without = zip(*(each for _, each in done), strict=True)
        return Fitted(signal, [replace(self, learned=tuple(each)) for each in without])

    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream."""
        kind = HeldEvidence if self.config.reproduction.over_the_set else ShapeEvidence
        return kind(self.learned, self.engine, self.scale, self.weight, self.config)

    def constants(self) -> dict[str, Any]:
        """The numbers behind units and normalisation, and the diagnostics of the fit."""
        return {**_CONSTANTS, "weight": self.weight, "geometry": asdict(self.geometry)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The weights of each encoder and what was learned with it."""
        arrays: dict[str, NDArray[Any]] = {}
        for e, (encoder, learned) in enumerate(zip(self.encoders, self.learned, strict=True)):
            arrays |= prefixed(str(e), _encoder_arrays(encoder, learned))
        return arrays

    @classmethod
    def layout(cls, config: VACEConfig, n_channels: int, constants: Mapping[str, Any]) -> Layout:
        """What `arrays` gives."""
        one: Layout = {"numbers": ("F64", (len(_NUMBERS),))}
        for k, (n_out, n_in, taps, _) in enumerate(stage_shapes(config, n_channels)):
            one[f"stage.{k}.kernel"] = ("F32", (n_out, n_in, taps))
            if config.reproduction.batch_norm:
                one |= {f"stage.{k}.{name}": ("F32", (n_out,)) for name in _NORM}
        d_z = config.reproduction.embedding_size
        if config.reproduction.position == "mahalanobis":
            one |= {"mean": ("F64", (d_z,)), "whitening": ("F64", (d_z, d_z))}
        else:
            one["bank"] = ("F64", (None, d_z))
        if config.reproduction.direction:
            one["prototypes"] = ("F64", (None, d_z))
        return {f"{e}.{name}": kind for e in range(config.encoders) for name, kind in one.items()}

    @classmethod
    def restored(
        cls, arrays: Arrays, normal: Normal, config: VACEConfig, constants: Mapping[str, Any]
    ) -> Self:
        """The reverse of `arrays`."""
        other = {k: v for k, v in constants.items() if k in _CONSTANTS and v != _CONSTANTS[k]}
        if other:
            raise ModelFileError(f"the model's shape was computed with other constants: {other}")
        each = [
            _encoder_restored(under(str(e), arrays), config, normal.n_channels)
            for e in range(config.encoders)
        ]
        encoders = tuple(encoder for encoder, _ in each)
        return cls(
            encoders,
            tuple(learned for _, learned in each),
            Geometry(**constants["geometry"]),
            _floor_unit(normal, config),
            constants["weight"],
            config,
            EngineSlot(encoders, normal.n_channels, config),
        )


_CONSTANTS = {
    "floor": FLOOR,
    "position_quantile": POSITION_QUANTILE,
    "direction_quantile": DIRECTION_QUANTILE,
    "least_direction": LEAST_DIRECTION,
}


def weight_of(config: VACEConfig, seasonality: Seasonality) -> float:
    """How much shape counts: the clearer the seasonality, the more.

    Patches that hold no whole period of anything tell what windows tell already, so they count
    only where their length is known or they are asked for.
    """
    if not config.amplitude or config.reproduction.over_the_set:
        return 1.0
    if config.shape == "auto" and config.patch_length is None:
        return 0.0
    return float(np.clip(2 * seasonality.rise, 0.5, 1.0))


def _floor_unit(normal: Normal, config: VACEConfig) -> NDArray[np.float64]:
    relative = config.reproduction.variance_floor == "relative"
    return normal.scale if relative else np.ones(normal.n_channels)


def _encoder_arrays(encoder: Encoder, learned: EncoderEvidence) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for k, stage in enumerate(encoder):
        arrays[f"stage.{k}.kernel"] = stage.kernel
        if stage.norm is not None:
            arrays |= {f"stage.{k}.{name}": getattr(stage.norm, name) for name in _NORM}
    position = learned.position
    if isinstance(position, Gaussian):
        arrays |= {"mean": position.mean, "whitening": position.whitening}
    elif isinstance(position, MemoryBank):
        arrays |= {"bank": position.bank}
    if learned.direction is not None:
        arrays["prototypes"] = learned.direction.prototypes
    arrays["numbers"] = np.array([getattr(learned, name) for name in _NUMBERS])
    return arrays


def _encoder_restored(
    arrays: Arrays, config: VACEConfig, n_channels: int
) -> tuple[Encoder, EncoderEvidence]:
    paper = config.reproduction
    stages = []
    for k, shape in enumerate(stage_shapes(config, n_channels)):
        norm = None
        if paper.batch_norm:
            norm = Norm(*(arrays[f"stage.{k}.{name}"] for name in _NORM))
        stages.append(Stage(arrays[f"stage.{k}.kernel"], shape.groups, norm))
    position: Position
    if paper.position == "mahalanobis":
        root = paper.position_distance == "root"
        position = Gaussian(arrays["mean"], arrays["whitening"], root)
    else:
        position = MemoryBank(arrays["bank"])
    direction = None
    if paper.direction:
        direction = Direction(arrays["prototypes"], paper.prototype_neighbours)
    return tuple(stages), EncoderEvidence(position, direction, *arrays["numbers"].tolist())


def trajectory(shape: Shape, table: Table, progress: Progress = silent) -> NDArray[np.float32]:
    """The embedding of every patch, (n_patches, n_encoders, d_z); NaN where a value is missing."""
    length = shape.config.length
    if len(table) < length:
        raise TooShortError(f"got {len(table)} rows; need at least patch_length={length}")
    rows = table.block(0, len(table))
    patches = PatchSet([rows], length, shape.scale)
    z = np.concatenate(list(embed(shape.engine.engine, patches, patches.grid(1), progress)))
    for row in np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist():
        z[max(0, row - length + 1) : row + 1] = np.nan
    return z


def position_scores(shape: Shape, table: Table) -> Array:
    """The position signal of each patch, (n_patches,), mean over encoders."""
    z = trajectory(shape, table)
    each = [evidence.position.score(z[:, k]) for k, evidence in enumerate(shape.learned)]
    return np.asarray(np.mean(each, axis=0))


def direction_scores(shape: Shape, table: Table) -> Array:
    """The direction signal of each patch, (n_patches,), mean over encoders.

    A patch without the neighbour that its velocity needs has the training's median.
    """
    offset, backward = shape.config.offset, shape.config.reproduction.velocity == "backward"
    z = trajectory(shape, table)
    total = np.zeros(len(z))
    own = slice(offset, None) if backward else slice(None, -offset)
    for k, evidence in enumerate(shape.learned):
        if evidence.direction is None:
            raise InputError("this detector was fitted with direction=False")
        each = np.full(len(z), evidence.direction_median)
        if len(z) > offset:
            each[own] = evidence.direction.score(z[offset:, k] - z[:-offset, k])
        total += each
    return total / len(shape.learned)
