"""The model: all that a fit learned, frozen, whole or not at all, and its safe file."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad import files
from vace_ad.alarms.blame import LENGTHS, Wander
from vace_ad.alarms.calibration import Calibration
from vace_ad.config import COMPUTING, VACEConfig
from vace_ad.errors import ConfigError, ModelFileError
from vace_ad.frames.training import step_seconds, training_parts, training_tables
from vace_ad.progress import Progress, silent
from vace_ad.signals import KINDS, Signal, Training
from vace_ad.signals.normal import Normal
from vace_ad.signals.protocol import prefixed, under
from vace_ad.signals.shape import Shape

Array = NDArray[np.float64]
KIND = files.Kind("vace-ad model", 2, "a model")


@dataclass(frozen=True)
class Model:
    """Channels, signals, constants and calibration."""

    config: VACEConfig
    channels: tuple[str, ...]
    normal: Normal
    signals: tuple[Signal, ...]
    calibration_scores: Array  # (n,), of training rows, each by statistics that did not see it
    wander: Wander  # of channels in training, by which events are blamed on them
    facts: Mapping[str, Any] = field(default_factory=dict)  # what happened in the fit

    @classmethod
    def fit(cls, data: Any, config: VACEConfig, progress: Progress = silent) -> Self:
        """Learn normal operation from tables or Parquet files."""
        watch = _Watch()
        tables, n_rows = training_tables(data, config)
        channels = tables[0].names
        tables = [table.aligned(channels) for table in tables]
        parts = training_parts(
            tables, channels, config, learn=lambda rows: Normal.fit(rows)[0].rebuild
        )
        training = Training.of(parts, config, progress)
        parts, config = list(training.parts), training.config
        watch.stamp("rows")
        signals: list[Signal] = []
        held_out = [np.zeros(len(part)) for part in parts]
        for kind in KINDS:
            if not kind.wanted(config):
                continue
            fitted = kind.fit(training)
            if fitted is None:
                continue
            signal, found = fitted
            signals.append(signal)
            held_out = [rows + more.sum(axis=0) for rows, more in zip(held_out, found, strict=True)]
            watch.stamp(kind.key)
        facts = {
            "rows": n_rows,
            "rows_used": sum(map(len, parts)),
            "step_seconds": step_seconds(tables),
            "rhythm": training.rhythm._asdict(),
            "engine": "none",
            "seconds": watch.seconds,
        }
        for signal in signals:
            facts |= getattr(signal, "facts", {})
        return cls(
            config,
            channels,
            training.normal,
            tuple(signals),
            np.concatenate(held_out),
            Wander.fit(parts),
            facts,
        )

    @cached_property
    def lines(self) -> dict[str, str]:
        """The lines of evidence, and what each watches, in words."""
        return {name: words for s in self.signals for name, words in s.lines.items()}

    @property
    def shape(self) -> Shape | None:
        """The paper's evidence, where patches have something to show."""
        return next((signal for signal in self.signals if isinstance(signal, Shape)), None)

    @property
    def reach(self) -> int:
        """Rows that a stretch needs to be scored."""
        return self.config.length

    @property
    def step(self) -> int | None:
        """Nanoseconds between training rows, where they had a time."""
        seconds = self.facts.get("step_seconds")
        return None if not seconds else round(seconds * 1e9)

    @cached_property
    def calibration(self) -> Calibration:
        """How scores are distributed in normal operation."""
        return Calibration.from_scores(self.calibration_scores, self.reach)

    # -------------------------------------------------------------------- file

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits of all that shapes a score."""
        description = self._description()
        shaping = {k: v for k, v in description["config"].items() if k not in COMPUTING}
        text = json.dumps([shaping, description["channels"], description["constants"]])
        return files.digest(text, self._arrays())[:12]

    def _description(self) -> dict[str, Any]:
        return {
            "config": self.config.to_dict(),
            "channels": list(self.channels),
            "constants": {
                "normal": self.normal.constants(),
                **{signal.key: signal.constants() for signal in self.signals},
            },
            "facts": dict(self.facts),
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {"calibration_scores": self.calibration_scores}
        arrays |= prefixed("normal", self.normal.arrays())
        arrays |= prefixed("wander", self.wander.arrays())
        for signal in self.signals:
            arrays |= prefixed(signal.key, signal.arrays())
        return arrays

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one file, whole or not at all."""
        files.write(path, files.pack(KIND, self._description(), self._arrays()))

    @classmethod
    def load(cls, path: str | PathLike[str], **computing: Any) -> Self:
        """Read a model; `engine`, `precision` and `device` may be chosen anew."""
        for name in computing:
            if name not in COMPUTING:
                raise ConfigError(
                    f"{name!r} cannot be changed on loading, only {', '.join(COMPUTING)} can"
                )
        description, arrays = files.read(path, KIND, _layout)
        config, channels = _settings(description)
        config = VACEConfig.from_preset(None, **{**config.to_dict(), **computing})
        constants = description["constants"]
        try:
            normal = Normal(**{**under("normal", arrays), **constants["normal"]})
            signals = tuple(
                kind.restored(under(kind.key, arrays), normal, config, constants[kind.key])
                for kind in KINDS
                if kind.key in constants
            )
            model = cls(
                config,
                channels,
                normal,
                signals,
                arrays["calibration_scores"],
                Wander(**under("wander", arrays)),
                description["facts"],
            )
            _check(model)
        except (KeyError, TypeError, ValueError, IndexError, np.linalg.LinAlgError) as wrong:
            if isinstance(wrong, ModelFileError):
                raise
            raise ModelFileError(f"{path} holds a model that cannot be used: {wrong!r}") from wrong
        return model

    def computing(self, config: VACEConfig) -> Self:
        """The same model for another engine."""
        return replace(self, config=config)


class _Watch:
    """Seconds of each stage of a fit."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def stamp(self, stage: str) -> None:
        """A stage has ended."""
        now = time.perf_counter()
        self.seconds[stage], self._last = now - self._last, now


def _settings(description: Mapping[str, Any]) -> tuple[VACEConfig, tuple[str, ...]]:
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in description["config"].items()}
    config = VACEConfig.from_preset(None, **settings)
    channels = tuple(description["channels"])
    if not channels or not all(isinstance(name, str) for name in channels):
        raise ValueError("its channels are no names")
    return config, channels


def _layout(description: dict[str, Any]) -> files.Layout:
    """The arrays that a description asks for."""
    config, channels = _settings(description)
    d = len(channels)
    layout: files.Layout = {
        "calibration_scores": ("F64", (None,)),
        "wander.usual": ("F64", (len(LENGTHS), d)),
        "wander.deviation": ("F64", (d,)),
        "normal.mean": ("F64", (d,)),
        "normal.scale": ("F64", (d,)),
        "normal.matrix": ("F64", (d, d)),
        "normal.noise": ("F64", (None, d)),
    }
    for kind in KINDS:
        if kind.key in description["constants"]:
            own = kind.layout(config, d, description["constants"][kind.key])
            layout |= {f"{kind.key}.{name}": shape for name, shape in own.items()}
    return layout


def _check(model: Model) -> None:
    """Refuse what a forged file may hold: facts that lack, numbers that no fit gives."""
    facts = model.facts
    if not isinstance(facts, Mapping) or not isinstance(facts.get("rows"), int):
        raise ValueError("its facts do not say how many rows it learned from")
    if not isinstance(facts.get("seconds"), Mapping) or not isinstance(facts.get("engine"), str):
        raise ValueError("its facts are incomplete")
    if len(model.calibration_scores) < 2:
        raise ValueError("it has no calibration scores")
    if not (model.normal.scale > 0).all() or len(model.normal.noise) == 0:
        raise ValueError("its units are not positive")
    largest = max(float(np.abs(array).max(initial=0)) for array in model._arrays().values())
    if largest > 1e150:
        raise ValueError("it holds numbers that would overflow")
