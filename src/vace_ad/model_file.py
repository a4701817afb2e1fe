"""The contents of a model file, and checks before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad import tensor_file
from vace_ad.alarms.alarm_model import AlarmModel
from vace_ad.alarms.suspects import LENGTHS
from vace_ad.config import VACEConfig
from vace_ad.frames.idle import watched
from vace_ad.signals import Signal, kinds
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.protocol import Seasonality, under


def settings(description: Mapping[str, Any]) -> tuple[VACEConfig, tuple[str, ...]]:
    """The settings and channels of a description."""
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in description["config"].items()}
    config = VACEConfig.from_preset(None, **given)
    channels = tuple(description["channels"])
    if not channels or not all(isinstance(name, str) for name in channels):
        raise ValueError("its channels are no names")
    return config, channels


def layout(description: dict[str, Any]) -> tensor_file.Layout:
    """The arrays that a description asks for."""
    config, channels = settings(description)
    d = len(channels)
    wanted: tensor_file.Layout = {
        "calibration_scores": ("F64", (None,)),
        "drift_range.largest": ("F64", (len(LENGTHS), d)),
        **dict.fromkeys(
            ("drift_range.deviation", "conditions.low", "conditions.high"), ("F64", (d,))
        ),
        **{f"alarm.{name}": shape for name, shape in AlarmModel.layout(d).items()},
    }
    for name in ("normal",) if watched(config, channels).all() else ("normal", "scored"):
        wanted |= {f"{name}.{each}": ("F64", (d,)) for each in ("mean", "scale")}
        wanted |= {f"{name}.matrix": ("F64", (d, d)), f"{name}.noise": ("F64", (None, d))}
    for kind in kinds(config.extra_signals):
        if kind.key in description["constants"]:
            own = kind.layout(config, d, description["constants"][kind.key])
            wanted |= {f"{kind.key}.{name}": shape for name, shape in own.items()}
    return wanted


def restored(
    arrays: Mapping[str, NDArray[Any]],
    normal: Normal,
    config: VACEConfig,
    constants: Mapping[str, Any],
) -> tuple[Signal, ...]:
    """The signals of a file."""
    return tuple(
        kind.restored(under(kind.key, arrays), normal, config, constants[kind.key])
        for kind in kinds(config.extra_signals)
        if kind.key in constants
    )


def rehearse(normal: Normal, signals: tuple[Signal, ...], n: int) -> None:
    """Refuse numbers that give `n` ordinary rows no finite score; best with a plain engine."""
    noise = np.resize(np.clip(normal.noise, -3, 3), (n, normal.n_channels))
    rows = normal.mean + normal.scale * noise
    with np.errstate(all="ignore"):
        for signal in signals:
            evidence = signal.begin(live=False)
            lines = [evidence.add(rows), evidence.end(), evidence.finish()]
            if len(lines[0]) != len(signal.lines):
                raise ValueError(f"its {signal.key} has {len(lines[0])} lines of evidence")
            if not np.isfinite(np.concatenate(lines, axis=1)).all():
                raise ValueError(f"ordinary rows get no finite score from its {signal.key}")


_POSITIVE = {
    "normal.scale", "scored.scale",
    *(f"alarm.cells.{name}" for name in ("scale", "spread", "error", "modes.share")),
    *(f"alarm.tails.{name}" for name in ("excess", "shape")),
}  # fmt: skip


def check(arrays: Mapping[str, NDArray[Any]], facts: Any) -> None:
    """Refuse what a forged file may hold: facts that lack, numbers that no fit gives."""
    _check_facts(facts)
    scores = arrays["calibration_scores"]
    if len(scores) < 2:
        raise ValueError("it has no calibration scores")
    varied = (arrays["normal.noise"] != arrays["normal.noise"][:1]).any()
    if varied and scores.min() == scores.max():
        raise ValueError("its calibration scores are all the same, but the rows of its fit not")
    scales = [array for name, array in arrays.items() if name in _POSITIVE]
    if not all((scale > 0).all() for scale in scales) or len(arrays["normal.noise"]) == 0:
        raise ValueError("its units are not positive")
    largest = max(float(np.abs(array).max(initial=0)) for array in arrays.values())
    if largest > 1e150:
        raise ValueError("it holds numbers that would overflow")


def _check_facts(facts: Any) -> None:
    """Refuse facts that cannot be told to people: some lack, or are of another kind."""
    if not isinstance(facts, Mapping) or not _is_number(facts.get("rows"), int):
        raise ValueError("its facts do not say how many rows it learned from")
    seconds = facts.get("seconds")
    if not isinstance(seconds, Mapping) or not isinstance(facts.get("engine"), str):
        raise ValueError("its facts are incomplete")
    if not all(map(_is_number, seconds.values())):
        raise ValueError("its facts do not say how long the fit took")
    between, pace = facts.get("step_seconds"), facts.get("pace_seconds")
    if between is not None and not _is_number(between):
        raise ValueError("the time between its rows is no number")
    if not isinstance(facts.get("regular_step", True), bool) or (
        pace is not None
        and not (isinstance(pace, list) and len(pace) == 2 and all(map(_is_number, pace)))
    ):
        raise ValueError("the pace of its rows is no pair of numbers")
    if not all(_is_number(facts.get(name, 0), int) for name in ("rows_used", "updates")):
        raise ValueError("its facts do not say how many rows it used")
    seasonality = facts.get("seasonality")
    if not isinstance(seasonality, Mapping) or set(seasonality) != set(Seasonality._fields):
        raise ValueError("its seasonality must be a period and a rise")
    if not _is_number(seasonality["period"], int) or not isinstance(
        seasonality["rise"], (int, float)
    ):
        raise ValueError("its seasonality must be a period and a rise")
    notes = facts.get("training", [])
    if not isinstance(notes, list) or not all(
        isinstance(note, Mapping) and isinstance(note.get("words"), str) for note in notes
    ):
        raise ValueError("its notes on the training are none")


def _is_number(value: object, kind: type | tuple[type, ...] = (int, float)) -> bool:
    """Whether a value is a number that a fit may give: no bool, not negative, not endless."""
    return isinstance(value, kind) and not isinstance(value, bool) and 0 <= value < 1e15  # type: ignore[operator]
