"""What clean processes are built of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

CHANNELS = 4
Array = NDArray[np.float64]
Rng = np.random.Generator
Process = Callable[[int, Rng], Array]


class Kind(NamedTuple):
    """A clean process."""

    name: str
    group: str
    rows: Process


def white(n: int, rng: Rng) -> Array:
    return rng.normal(size=(n, CHANNELS))


def student(degrees: float) -> Process:
    """Independent draws of a t distribution with deviation one."""
    scale = np.sqrt((degrees - 2) / degrees)
    return lambda n, rng: rng.standard_t(degrees, size=(n, CHANNELS)) * scale


def mixed(x: Array, rng: Rng) -> Array:
    """Channels that each follow several of the hidden ones."""
    return np.asarray(x @ rng.normal(size=(x.shape[1], CHANNELS)))


def autoregressive(*coefficients: float, noise: Process = white) -> Process:
    """Every channel follows its own past, from a start that is forgotten."""
    past = [1.0, *(-c for c in coefficients)]
    return lambda n, rng: lfilter([1.0], past, noise(n + 2000, rng), axis=0)[2000:]


def waves(n: int, rng: Rng, *periods: float) -> Array:
    """Rhythms with their own phases, (n, len(periods))."""
    phase = rng.uniform(0, 2 * np.pi, len(periods))
    return np.sin(2 * np.pi * np.arange(n)[:, None] / periods + phase)


def seasonal(*periods: float, noise: Process = white, level: float = 0.3) -> Process:
    """Channels that mix rhythms, with noise on top."""
    return lambda n, rng: mixed(waves(n, rng, *periods), rng) + level * noise(n, rng)


def states(n: int, rng: Rng, stay: float, weights: tuple[float, ...]) -> NDArray[np.intp]:
    """A chain that stays on average `stay` rows, (n,)."""
    changes = rng.random(n) < 1 / stay
    drawn = rng.choice(len(weights), size=n, p=weights)
    last = np.maximum.accumulate(np.where(changes, np.arange(n), 0))
    return np.asarray(drawn[last])


def slow(n: int, rng: Rng, memory: float, width: int = CHANNELS) -> Array:
    """A wandering of deviation one that forgets within `memory` rows, (n, width)."""
    keep = 1 - 1 / memory
    steps = rng.normal(size=(n + int(10 * memory), width)) * np.sqrt(1 - keep**2)
    return np.asarray(lfilter([1.0], [1.0, -keep], steps, axis=0)[-n:])
