"""The interface of a signal: one module each, listed in `signals.KINDS`.

A `Signal` is what was learned from training rows; it is frozen. `Signal.begin` starts an
`Evidence`, which takes rows as they come and gives one or more lines of evidence, row by row. A
table is a stream run to its end, so there is no second way to compute anything.

What all signals share of training is here too: units, held-out rows, and the seasonality of the
series, its period in rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.progress import Progress, silent
from vace_ad.signals.baseline_model import Normal
from vace_ad.signals.incremental import Update

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]
Layout = dict[str, tuple[str, tuple[int | None, ...]]]  # name → type, shape (None: any length)
SPAN = 2048  # rows of one autocorrelation; longer periods do not fit into patches
LOOKS = 64  # at most
SHORTEST, LONGEST = 40, 330  # rows of a period that a patch can follow
CLEAR = 0.1  # rise of the autocorrelation at the period above its lowest point before
CHANCE = 8.0  # rise that white noise may show, over the root of the number of values seen
TIMES = 4  # that training must show the period
ROUND = 12  # rows that a patch length is a multiple of, so that many strides divide it


class LearnedAlone:
    """A dataclass whose pickle holds its fields, without what was derived from them on use."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getstate__(self) -> dict[str, Any]:
        """The fields."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Training:
    """What signals learn from."""

    parts: Sequence[Array]  # complete stretches, (n_rows, n_channels) each
    normal: Normal
    residuals: Sequence[Array]  # of each part: what other channels do not predict, held out
    without: Sequence[Normal]  # the same normal, learned without each of the blocks of rows
    seasonality: Seasonality
    config: VACEConfig
    progress: Progress = silent

    @classmethod
    def of(cls, parts: Sequence[Array], config: VACEConfig, progress: Progress = silent) -> Self:
        """Training rows with what all signals need of them, and settings that suit them."""
        seasonality = find_seasonality(parts)
        config = with_seasonality(config, seasonality)
        parts = [part for part in parts if len(part) >= config.least_rows]
        return cls(parts, *Normal.fit(parts), seasonality, config, progress)

    @cached_property
    def scaled(self) -> list[Array]:
        """The parts in deviations of their channels."""
        return [self.normal.scaled(part) for part in self.parts]


class Evidence(ABC):
    """Lines of evidence along a stream of rows, given out as rows become complete.

    Rows come in stretches; nothing reaches across a cut. What comes out has a column for each row
    that went in, in order, whatever the chunks. `now` holds the provisional evidence of the rows
    just added: what can be said of them before any later row is known.
    """

    def __init__(self, n_lines: int) -> None:
        self.n_lines = n_lines
        self.now = np.empty((n_lines, 0))

    @abstractmethod
    def add(self, rows: Array, scaled: Array | None = None) -> Array:
        """Take rows (n, n_channels) of the present stretch; evidence (n_lines, m) now complete.

        `scaled` are the same rows as `Normal.scaled` gives them, from who asks several signals.
        """

    @abstractmethod
    def end(self) -> Array:
        """End the present stretch, which has rows; the evidence (n_lines, m) that is left."""

    def skip(self, n: int) -> Array:
        """Rows between two stretches that no evidence can be had of."""
        return np.full((self.n_lines, n), np.nan)

    def finish(self) -> Array:
        """The evidence that is left when the stream ends; the last stretch has been ended."""
        return np.empty((self.n_lines, 0))

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes with the rows, as arrays; `resume` takes it back."""

    @abstractmethod
    def resume(self, state: Arrays) -> None:
        """Go on from the state of another evidence of the same signal."""


class Fitted(NamedTuple):
    """A signal, and what it would be had each of the `FOLDS` blocks of rows been missing.

    A block is scored by a stream of what did not learn from it, which calibrates alarms. A signal
    that learns a few numbers is the same without any block: it leaves `without` empty.
    """

    signal: Signal
    without: Sequence[Signal] = ()

    def unseen(self, block: int) -> Signal:
        """The signal that did not learn from this block."""
        return self.without[block] if self.without else self.signal


class Signal(ABC):
    """One kind of evidence, learned."""

    key: ClassVar[str]  # its place in the model file
    lines: ClassVar[Mapping[str, str]]  # the evidence it gives, and what each line watches

    @classmethod
    def wanted(cls, config: VACEConfig) -> bool:
        """Whether these settings allow this signal."""
        return True

    @classmethod
    @abstractmethod
    def fit(cls, training: Training) -> Fitted | None:
        """Learn from training rows; None where they have nothing of the kind to show."""

    def updated(self, update: Update) -> Fitted:
        """The signal with new rows, and without each block of them.

        Unless a signal says otherwise it stays as it is.
        """
        return Fitted(self)

    @abstractmethod
    def begin(self, *, live: bool = False) -> Evidence:
        """Evidence of a stream; `live` streams also give provisional evidence."""

    @abstractmethod
    def constants(self) -> dict[str, Any]:
        """The numbers behind its scores that are no setting, as plain values."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it learned, for the model file."""

    @classmethod
    @abstractmethod
    def layout(cls, config: VACEConfig, n_channels: int, constants: Mapping[str, Any]) -> Layout:
        """What `arrays` gives under these settings."""

    @classmethod
    @abstractmethod
    def restored(
        cls, arrays: Arrays, normal: Normal, config: VACEConfig, constants: Mapping[str, Any]
    ) -> Self:
        """The reverse of `arrays`."""


@dataclass(frozen=True)
class AmplitudeSignal(Signal):
    """Part of the default's amplitude signals; its fields with a default are its constants."""

    @classmethod
    def wanted(cls, config: VACEConfig) -> bool:
        """Whether amplitude counts."""
        return config.amplitude

    def constants(self) -> dict[str, Any]:
        """The fields with a default."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.default is not MISSING}


@dataclass(frozen=True)
class NumbersSignal(AmplitudeSignal):
    """A signal that learns a few numbers and follows a past average."""

    n_learned: ClassVar[int]

    normal: Normal
    learned: Array  # (n_learned,)
    half_life: int  # rows
    warm: int  # first rows of a stream, whose mean is its past from the start

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned."""
        return {"learned": self.learned}

    @classmethod
    def layout(cls, config: VACEConfig, n_channels: int, constants: Mapping[str, Any]) -> Layout:
        """What `arrays` gives."""
        return {"learned": ("F64", (cls.n_learned,))}

    @classmethod
    def restored(
        cls, arrays: Arrays, normal: Normal, config: VACEConfig, constants: Mapping[str, Any]
    ) -> Self:
        """The reverse of `arrays`."""
        return cls(normal, arrays["learned"], config.drift_half_life, config.warm, **constants)


def prefixed(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The arrays with `prefix.` before their names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with `prefix.`, without it."""
    start = f"{prefix}."
    return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}


class Seasonality(NamedTuple):
    """A period in rows, 0 for none, and how far the autocorrelation rises there."""

    period: int
    rise: float

    @property
    def clear(self) -> bool:
        """Whether the period is clear."""
        return self.rise >= CLEAR and SHORTEST <= self.period <= LONGEST


def with_seasonality(config: VACEConfig, seasonality: Seasonality) -> VACEConfig:
    """The settings with patches of one period, unless their length is given or there is none."""
    paper = config.reproduction.over_the_set
    if config.patch_length is not None or not seasonality.clear or paper:
        return config
    return replace(config, patch_length=round(seasonality.period / ROUND) * ROUND)


def find_seasonality(parts: Sequence[Array]) -> Seasonality:
    """The first clear peak of the mean autocorrelation of all channels that vary."""
    longest = max(parts, key=len)
    line, n_values = _autocorrelation(Normal.units(parts).scaled(longest))
    if not len(line):
        return Seasonality(0, 0.0)
    inner = line[1:-1]
    peaks = np.flatnonzero((inner >= line[:-2]) & (inner > line[2:])) + 1
    peaks = peaks[(peaks >= 8) & (peaks <= LONGEST)]
    if not len(peaks):
        return Seasonality(0, 0.0)
    rises = line[peaks] - np.minimum.accumulate(line)[peaks]
    first = int(np.flatnonzero(rises >= 0.8 * rises.max())[0])  # not one of its multiples
    if len(longest) < TIMES * peaks[first] or rises[first] < CHANCE / np.sqrt(n_values):
        return Seasonality(0, 0.0)
    return Seasonality(int(peaks[first]), float(rises[first]))


def _autocorrelation(rows: Array) -> tuple[Array, int]:
    """Mean autocorrelation of stretches without their trend, over channels that vary.

    It is empty where there is none. Also how many values it was worked out from.
    """
    span = min(SPAN, len(rows))
    lags = min(LONGEST + 70, span // 2)
    looks = max(1, min(LOOKS, 2 * (len(rows) // span) - 1))
    slope = np.linspace(-1, 1, span)[:, None]
    size = 1 << int(np.ceil(np.log2(2 * span)))
    total = np.zeros((lags + 1, rows.shape[1]))
    for start in np.linspace(0, len(rows) - span, looks).astype(int).tolist():
        part = rows[start : start + span] - rows[start : start + span].mean(axis=0)
        part = part - slope * ((slope * part).sum(axis=0) / (slope * slope).sum())
        spectrum = np.fft.rfft(part, size, axis=0)
        products = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=0)[: lags + 1]
        total += products / (span - np.arange(lags + 1))[:, None]
    varies = total[0] > 1e-12
    if not varies.any() or lags < 10:
        return np.empty(0), 0
    n_values = min(len(rows), looks * span) * int(varies.sum())
    return np.asarray((total[:, varies] / total[0, varies]).mean(axis=1)), n_values
