"""Fitting on the command line: the options of the detector."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    from vace_ad.config import VACEConfig

_DETECTOR = "The detector"

Preset = Annotated[
    str | None,
    typer.Option(
        help="'paper' for the paper's text, 'released' for its authors' code.",
        rich_help_panel=_DETECTOR,
    ),
]
PatchLength = Annotated[
    int | None,
    typer.Option(
        help="Rows that a patch covers; about the length of what repeats. Default: one period of "
        "the training rows, else 96.",
        rich_help_panel=_DETECTOR,
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed.", rich_help_panel=_DETECTOR)]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other setting of the detector, for example --set encoders=8.",
        rich_help_panel=_DETECTOR,
    ),
]


def make_config(
    preset: str | None, patch_length: int | None, seed: int, settings: Sequence[str] | None
) -> VACEConfig:
    """The detector's settings, checked."""
    from vace_ad.config import VACEConfig

    chosen: dict[str, Any] = {"random_state": seed}
    if patch_length is not None:
        chosen["patch_length"] = patch_length
    for setting in settings or ():
        name, equals, text = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting!r}: write NAME=VALUE, such as --set encoders=8")
        chosen[name.strip()] = _value(text.strip())
    return VACEConfig.from_preset(preset, **chosen)


def _value(text: str) -> Any:
    try:
        value = json.loads(text.lower() if text in ("True", "False") else text)
    except ValueError:
        return None if text == "None" else text
    return tuple(value) if isinstance(value, list) else value
