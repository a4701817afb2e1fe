"""VACE by name: the default, the two presets, the paper's ablations and its sensitivity study.

The studies start from the preset `released`, because the paper's numbers come from that code.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from vace_ad.config import COMPUTING, PRESETS, Reproduction, VACEConfig
from vace_study.baselines.contract import Detector, Method

# Ablations of the paper's Table 2 and appendix C. The released "no pretext" keeps the weights of
# its first step, so BatchNorm has seen one batch; the calibrated one sees as many as the full
# model, and differs from it in the pretext alone.
_ABLATIONS: dict[str, dict[str, Any]] = {
    "vace-no-channel-encoder": {"encoder": "shared"},
    "vace-no-pretext": {"pretext": False},
    "vace-no-pretext-calibrated": {"pretext": False, "checkpoint": "last"},
    "vace-no-mahalanobis": {"position": "memory"},
    "vace-no-direction": {"direction": False},
    "vace-no-batchnorm": {"batch_norm": False},
}

# The paper's appendix A: one setting at a time; the middle value of each is the preset's own. The
# released code trains with an offset of one patch, whatever its length.
_SENSITIVITIES: dict[str, dict[str, Any]] = {
    "vace-patch-48": {"patch_length": 48, "pretext_offset": 48},
    "vace-patch-128": {"patch_length": 128, "pretext_offset": 128},
    "vace-offset-24": {"velocity_offset": 24},
    "vace-offset-96": {"velocity_offset": 96},
    "vace-iterations-10": {"iterations": 10},
    "vace-iterations-40": {"iterations": 40},
    "vace-weight-0.5": {"direction_weight": 0.5},
    "vace-weight-2": {"direction_weight": 2.0},
    "vace-expansion-4": {"channel_expansion": 4},
    "vace-expansion-16": {"channel_expansion": 16},
}

ABLATION = ("vace-released", *_ABLATIONS)
SENSITIVITY = ("vace-released", *_SENSITIVITIES)


# Of the code behind the default's settings; raised by any change that moves one of its scores.
_DEFAULT_VERSION = 4
# Settings younger than committed rows, whose defaults leave the scores of these rows as they were.
_YOUNGER = (
    "robust", "off", "run_up", "run_down", "context", "watch", "components", "maintenance",
    "calendar",
)  # fmt: skip


def _method(
    name: str, preset: str | None, settings: dict[str, Any] | None = None, version: int = 1
) -> Method:
    """A VACE method: a preset with some settings changed."""
    changed = settings or {}

    def make(seed: int) -> Detector:
        from vace_ad.detector import VACE

        return VACE(preset=preset, random_state=seed, **changed)

    told = _settings(VACEConfig.from_preset(preset, **changed), preset, changed)
    return Method(name, make, told, category="Self-Supervised", version=version)


def _settings(config: VACEConfig, preset: str | None, changed: dict[str, Any]) -> dict[str, Any]:
    """What the hash covers: of the default all that shapes a score, of a preset what it names.

    A preset leaves out what the default adds to the paper, so a new setting of the default does not
    make rows of the preset look like those of another method.
    """
    every = config.to_dict()
    if preset is None:
        left_out = (*COMPUTING, "random_state", "new_normal_after")  # the last shapes alarms alone
        defaults = VACEConfig().to_dict()
        return {
            name: value
            for name, value in every.items()
            if name not in left_out and not (name in _YOUNGER and value == defaults[name])
        }
    named = {*PRESETS[preset], *(each.name for each in fields(Reproduction))} - {*_YOUNGER}
    named |= {*changed}
    return {"preset": preset, **{name: every[name] for name in sorted(named)}}


METHODS = (
    _method("vace", None, version=_DEFAULT_VERSION),
    _method("vace-paper", "paper"),
    _method("vace-released", "released"),
    *(_method(name, "released", changed) for name, changed in _ABLATIONS.items()),
    *(_method(name, "released", changed) for name, changed in _SENSITIVITIES.items()),
)
