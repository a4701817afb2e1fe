"""Stationary score processes for the alarm tests: what detectors of normal data give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

PATCH = 96


def smooth(x: np.ndarray, width: int = PATCH) -> np.ndarray:
    total = np.cumsum(np.insert(x, 0, 0.0))
    return (total[width:] - total[:-width]) / width


def rough(n: int, rng: np.random.Generator) -> np.ndarray:
    """AR(1) noise: remembers a hundred rows, but is jagged."""
    noise = lfilter([np.sqrt(1 - 0.99**2)], [1, -0.99], rng.normal(size=n + 500))
    return np.asarray(noise)[500:]


def averaged(n: int, rng: np.random.Generator) -> np.ndarray:
    """Means over a patch."""
    return smooth(rng.normal(size=n + PATCH - 1)) * PATCH**0.5


def skewed(n: int, rng: np.random.Generator) -> np.ndarray:
    """Means over a patch of heavy-tailed evidence."""
    return smooth(rng.exponential(size=n + PATCH - 1) ** 2)


def product(n: int, rng: np.random.Generator) -> np.ndarray:
    """Log-normal, averaged twice, as patch scores that rows then average."""
    noise = smooth(smooth(rng.normal(size=n + 2 * PATCH - 2)))
    return np.exp(0.5 * PATCH**0.5 * noise)


Process = Callable[[int, np.random.Generator], np.ndarray]
PROCESSES: dict[str, Process] = {
    "rough": rough,
    "averaged": averaged,
    "skewed": skewed,
    "product": product,
}
