"""A fitted detector as named arrays, and back: what a model file holds beside its description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.method.amplitude import RELATION_WEIGHTS, Amplitude, Channels, Envelope
from vace_ad.method.direction import Direction
from vace_ad.method.encoder import Encoder, Norm, Stage, stage_shapes
from vace_ad.method.position import Gaussian, MemoryBank, Position
from vace_ad.method.relation import Relation
from vace_ad.method.shape import EncoderEvidence, Shape
from vace_ad.method.spikes import Spikes

if TYPE_CHECKING:
    from vace_ad.detector import VACE

T = TypeVar("T")

Arrays = Mapping[str, NDArray[Any]]
Layout = dict[str, tuple[str, tuple[int | None, ...]]]  # name → type, shape (None: any length)
_NORM = ("gamma", "beta", "mean", "var")
_ENVELOPE = ("low", "high", "usual")
_SPIKES = ("edge", "usual")
_NUMBERS = ("position_unit", "direction_unit", "direction_median")


def encoder_arrays(encoder: Encoder, evidence: EncoderEvidence) -> dict[str, NDArray[Any]]:
    """The weights of an encoder and what was learned with it."""
    arrays: dict[str, NDArray[Any]] = {}
    for k, stage in enumerate(encoder):
        arrays[f"stage.{k}.kernel"] = stage.kernel
        if stage.norm is not None:
            arrays |= {f"stage.{k}.{name}": getattr(stage.norm, name) for name in _NORM}
    position = evidence.position
    if isinstance(position, Gaussian):
        arrays |= {"mean": position.mean, "whitening": position.whitening}
    elif isinstance(position, MemoryBank):
        arrays |= {"bank": position.bank}
    if evidence.direction is not None:
        arrays["prototypes"] = evidence.direction.prototypes
    arrays["numbers"] = np.array([getattr(evidence, name) for name in _NUMBERS])
    return arrays


def encoder_layout(config: VACEConfig, n_channels: int) -> Layout:
    """What `encoder_arrays` gives for these settings."""
    layout: Layout = {"numbers": ("F64", (len(_NUMBERS),))}
    for k, (n_out, n_in, taps, _) in enumerate(stage_shapes(config, n_channels)):
        layout[f"stage.{k}.kernel"] = ("F32", (n_out, n_in, taps))
        if config.batch_norm:
            layout |= {f"stage.{k}.{name}": ("F32", (n_out,)) for name in _NORM}
    d_z = config.embedding_size
    if config.position == "mahalanobis":
        layout |= {"mean": ("F64", (d_z,)), "whitening": ("F64", (d_z, d_z))}
    else:
        layout["bank"] = ("F64", (None, d_z))
    if config.direction:
        layout["prototypes"] = ("F64", (None, d_z))
    return layout


def encoder_restored(
    arrays: Arrays, config: VACEConfig, n_channels: int
) -> tuple[Encoder, EncoderEvidence]:
    """The reverse of `encoder_arrays`."""
    stages = []
    for k, shape in enumerate(stage_shapes(config, n_channels)):
        norm = None
        if config.batch_norm:
            norm = Norm(*(arrays[f"stage.{k}.{name}"] for name in _NORM))
        stages.append(Stage(arrays[f"stage.{k}.kernel"], shape.groups, norm))
    position: Position
    if config.position == "mahalanobis":
        root = config.position_distance == "root"
        position = Gaussian(arrays["mean"], arrays["whitening"], root)
    else:
        position = MemoryBank(arrays["bank"])
    direction = None
    if config.direction:
        direction = Direction(arrays["prototypes"], config.prototype_neighbours)
    return tuple(stages), EncoderEvidence(position, direction, *arrays["numbers"].tolist())


def amplitude_arrays(amplitude: Amplitude) -> dict[str, NDArray[Any]]:
    """The units of the channels, the envelopes of all window lengths, spikes and relation."""
    arrays: dict[str, NDArray[Any]] = dict(amplitude.channels._asdict())
    for i, envelope in enumerate(amplitude.envelopes):
        arrays |= {f"{i}.{name}": getattr(envelope, name) for name in _ENVELOPE}
    arrays |= {f"spikes.{name}": getattr(amplitude.spikes, name) for name in _SPIKES}
    arrays["relation.matrix"] = amplitude.relation.matrix
    for i, envelope in enumerate(amplitude.relation_envelopes):
        arrays |= {f"relation.{i}.{name}": getattr(envelope, name) for name in _ENVELOPE}
    return arrays


def amplitude_layout(config: VACEConfig, n_channels: int) -> Layout:
    """What `amplitude_arrays` gives for these settings."""
    layout: Layout = dict.fromkeys(Channels._fields, ("F64", (n_channels,)))
    layout |= {"spikes.edge": ("F64", (n_channels,)), "spikes.usual": ("F64", (1,))}
    layout["relation.matrix"] = ("F64", (n_channels, n_channels))
    envelopes = [str(i) for i in range(len(config.windows))]
    envelopes += [f"relation.{i}" for i in range(len(RELATION_WEIGHTS))]
    sizes = (2 * n_channels, 2 * n_channels, 2)
    for where in envelopes:
        layout |= {
            f"{where}.{name}": ("F64", (size,)) for name, size in zip(_ENVELOPE, sizes, strict=True)
        }
    return layout


def amplitude_restored(arrays: Arrays, config: VACEConfig) -> Amplitude:
    """The reverse of `amplitude_arrays`."""

    def envelopes(where: str, windows: Sequence[int]) -> tuple[Envelope, ...]:
        return tuple(
            Envelope(window, *(arrays[f"{where}{i}.{name}"] for name in _ENVELOPE))
            for i, window in enumerate(windows)
        )

    return Amplitude(
        Channels(arrays["mean"], arrays["scale"]),
        envelopes("", config.windows),
        Spikes(*(arrays[f"spikes.{name}"] for name in _SPIKES)),
        Relation(arrays["relation.matrix"]),
        envelopes("relation.", config.windows[: len(RELATION_WEIGHTS)]),
        config.drift_half_life,
    )


def detector_arrays(detector: VACE) -> dict[str, NDArray[Any]]:
    """Everything that a fitted detector learned, but for its description."""
    arrays: dict[str, NDArray[Any]] = {
        "scale": detector.scale_,
        "calibration_scores": detector.calibration_scores_,
        "reference": detector.reference_,
    }
    learned = zip(detector.encoders_, detector.shape_.encoders, strict=True)
    for e, (encoder, evidence) in enumerate(learned):
        arrays |= _prefixed(f"encoder.{e}.", encoder_arrays(encoder, evidence))
    if detector.amplitude_ is not None:
        arrays |= _prefixed("amplitude.", amplitude_arrays(detector.amplitude_))
    return arrays


def detector_layout(config: VACEConfig, n_channels: int) -> Layout:
    """What `detector_arrays` gives for these settings."""
    layout: Layout = {
        "scale": ("F64", (n_channels,)),
        "calibration_scores": ("F64", (None,)),
        "reference": ("F64", (None, None, n_channels)),
    }
    for e in range(config.encoders):
        layout |= _prefixed(f"encoder.{e}.", encoder_layout(config, n_channels))
    if config.amplitude:
        layout |= _prefixed("amplitude.", amplitude_layout(config, n_channels))
    return layout


def restore(detector: VACE, arrays: Arrays) -> None:
    """Give a detector, whose settings and channels are set, what it had learned."""
    config, n_channels = detector.config, len(detector.channels_)
    detector.scale_ = arrays["scale"]
    detector.calibration_scores_ = arrays["calibration_scores"]
    detector.reference_ = arrays["reference"]
    learned = [
        encoder_restored(_under(f"encoder.{e}.", arrays), config, n_channels)
        for e in range(config.encoders)
    ]
    detector.encoders_ = tuple(encoder for encoder, _ in learned)
    detector.shape_ = Shape(tuple(evidence for _, evidence in learned), config)
    detector.amplitude_ = None
    if config.amplitude:
        detector.amplitude_ = amplitude_restored(_under("amplitude.", arrays), config)


def _prefixed(prefix: str, named: Mapping[str, T]) -> dict[str, T]:
    return {prefix + name: value for name, value in named.items()}


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
