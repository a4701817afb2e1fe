"""The seasonality of a series, from its training rows alone: its period in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.baseline_model import Normal

Array = NDArray[np.float64]

SPAN = 2048  # rows of one autocorrelation; longer periods do not fit into patches
LOOKS = 64  # at most
SHORTEST, LONGEST = 40, 330  # rows of a period that a patch can follow
CLEAR = 0.1  # rise of the autocorrelation at the period above its lowest point before
CHANCE = 8.0  # rise that white noise may show, over the root of the number of values seen
TIMES = 4  # that training must show the period
ROUND = 12  # rows that a patch length is a multiple of, so that many strides divide it


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
