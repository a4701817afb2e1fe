"""What config.json says of a TSPulse network, and a refusal of what is not written here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vace_ad.errors import ModelFileError
from vace_study.baselines.weights import number

# Settings of the released class that change the network, its values when config.json is silent,
# and the ones that are written here. "common_channels" is a misspelling in use; it acts alike.
_SHARED = ("common_channel", "common_channels")
_KNOWN: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "mode": ("common_channel", _SHARED),
    "decoder_mode": ("common_channel", _SHARED),
    "fuse_fft": (False, (True,)),
    "scaling": ("revin", ("revin",)),
    "revin_affine": (True, (True,)),
    "reconstruction_type": ("patchwise", ("patchwise",)),
    "norm_mlp": ("LayerNorm", ("LayerNorm",)),
    "gated_attn": (True, (True,)),
    "gated_attention_activation": ("softmax", ("softmax",)),
    "head_gated_attention_activation": ("softmax", ("softmax",)),
    "self_attn": (False, (False,)),
    "use_positional_encoding": (False, (False,)),
    "use_learnable_mask_token": (True, (True,)),
    "fft_remove_component": ("last", ("last",)),
    "fft_time_consistent_masking": (True, (True,)),
    "fft_applied_on": ("scaled_ts", ("scaled_ts",)),
    "fft_prob_mode": ("plain", ("plain", "log")),
    "fft_time_add_forecasting_pt_loss": (False, (True, False)),
    "enable_fft_prob_loss": (True, (True, False)),
    "channel_virtual_expand_scale": (1, (1, None)),
    "channel_register_tokens": (None, (None,)),
}
_LAYERWISE = ("num_patches", "num_channels", "d_model")  # may narrow with depth; not written here


@dataclass(frozen=True)
class Sizes:
    """The numbers that a network is built from."""

    context_length: int
    patch_length: int
    d_model: int
    num_layers: int
    decoder_num_layers: int
    expansion_factor: int
    patch_register_tokens: int
    register_mixer_layers: int
    prediction_length: int  # 0: no forecast head
    fft_prob_length: int  # 0: no head for the spectrum's softmax
    minimum_scale: float
    norm_eps: float
    dropout: float
    head_dropout: float
    log_spectrum: bool  # softmax of log(1 + magnitude) instead of the magnitude
    weights: tuple[float, float, float, float]  # of the losses: time, spectrum, through it, softmax

    @property
    def n_patches(self) -> int:
        """Patches of a window; as many again of its spectrum."""
        return self.context_length // self.patch_length

    @property
    def n_tokens(self) -> int:
        """Patches of both kinds and registers."""
        return 2 * self.n_patches + self.patch_register_tokens


def sizes_of(config: Mapping[str, Any], folder: Path) -> Sizes:
    """The sizes that config.json names, if the network is of the kind that is written here."""
    _refuse_unknown(config, folder)
    whole = {
        name: number(config, name, folder)
        for name in (
            "context_length",
            "patch_length",
            "d_model",
            "num_layers",
            "decoder_num_layers",
            "expansion_factor",
            "patch_register_tokens",
            "register_mixer_layers",
        )
    }
    for name, other in (
        ("patch_stride", "patch_length"),
        ("mask_block_length", "patch_length"),
        ("decoder_d_model", "d_model"),
    ):
        if config.get(name, whole[other]) != whole[other]:
            raise _mismatch(folder, name, config[name], f"the same as {other}, {whole[other]}")
    context, patch = whole["context_length"], whole["patch_length"]
    if context % patch or context % 2:
        raise _mismatch(folder, "context_length", context, f"even and a multiple of {patch}")
    forecasts = config.get("fft_time_add_forecasting_pt_loss", False)
    softmax = config.get("enable_fft_prob_loss", True)
    told_length = config.get("fft_prob_length") is not None
    length = number(config, "fft_prob_length", folder) if told_length else context // 2
    return Sizes(
        **whole,
        prediction_length=number(config, "prediction_length", folder) if forecasts else 0,
        fft_prob_length=length if softmax else 0,
        minimum_scale=float(config.get("minimum_scale", 1e-5)),
        norm_eps=float(config.get("norm_eps", 1e-5)),
        dropout=float(config.get("dropout", 0.2)),
        head_dropout=float(config.get("head_dropout", 0.2)),
        log_spectrum=config.get("fft_prob_mode", "plain") == "log",
        weights=(
            float(config.get("masked_reconstruction_loss_weight", 1)),
            float(config.get("fft_weight", 1)),
            float(config.get("fft_original_signal_loss_weight", 1)),
            float(config.get("fft_prob_weight", 1)) if softmax else 0.0,
        ),
    )


def _refuse_unknown(config: Mapping[str, Any], folder: Path) -> None:
    for name, (silent, allowed) in _KNOWN.items():
        value = config.get(name, silent)
        if value not in allowed:
            raise _mismatch(folder, name, value, " or ".join(repr(each) for each in allowed))
    for kind in _LAYERWISE:
        for name in (f"{kind}_layerwise_scale", f"decoder_{kind}_layerwise_scale"):
            if any(each != 1 for each in config.get(name) or ()):
                raise _mismatch(folder, name, config[name], "null or all 1")


def _mismatch(folder: Path, name: str, value: object, expected: str) -> ModelFileError:
    return ModelFileError(
        f"config.json in {str(folder)!r} has {name} = {value!r}; this package runs networks with "
        f"{expected}: use the branch main of the model, which is the one for anomaly detection"
    )
