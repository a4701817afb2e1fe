"""Fitting on the command line: the options of the detector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
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


_PLANT = "The plant"
Off = Annotated[
    str | None,
    typer.Option(
        "--off-when",
        "--off",
        metavar="CONDITION",
        help='The machine stands still under this condition, for example "pump_speed < 5": those '
        "rows are neither learned nor judged.",
        rich_help_panel=_PLANT,
    ),
]
RunUp = Annotated[
    int | None,
    typer.Option(help="Rows after a standstill that count as off too.", rich_help_panel=_PLANT),
]
RunDown = Annotated[
    int | None,
    typer.Option(help="Rows before a standstill that raise no alarm.", rich_help_panel=_PLANT),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="Columns that explain others and are never blamed: ambient conditions, set points, "
        "product codes, also as text.",
        rich_help_panel=_PLANT,
    ),
]
Watch = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="Watch these columns alone; the others explain them.",
        rich_help_panel=_PLANT,
    ),
]
Maintenance = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Planned windows, as CSV of start,end or iCalendar: their rows are neither learned "
        "nor judged.",
        rich_help_panel=_PLANT,
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Past faults, as CSV of start,end and, if you like, code, note and equipment: left "
        "out of training, and measured against.",
        rich_help_panel=_PLANT,
    ),
]


def plant_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the plant among the options of a command."""
    chosen = {name: given[name] for name in ("off", "run_up", "run_down")}
    for name in ("context", "watch"):
        if given[name] is not None:
            chosen[name] = tuple(part.strip() for part in given[name].split(",") if part.strip())
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if given["maintenance"] is not None:
        chosen["maintenance"] = windows(given["maintenance"])
    return chosen


def windows(file: str) -> tuple[str, ...]:
    """The planned windows of a file."""
    from vace_ad.frames.spans import read_spans

    return tuple(span.window for span in read_spans(Path(file)))


def make_config(
    preset: str | None,
    patch_length: int | None,
    seed: int,
    settings: Sequence[str] | None,
    plant: Mapping[str, Any],
) -> VACEConfig:
    """The detector's settings, checked; `plant` are all options of the command."""
    from vace_ad.config import VACEConfig

    chosen: dict[str, Any] = {"random_state": seed, **plant_settings(plant)}
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
