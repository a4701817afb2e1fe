"""Sensors that hang together, faults in one of them, and a detector simple enough to trust."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

PATCH = 32


def plant(n: int, channels: int, rng: np.random.Generator) -> np.ndarray:
    """Each channel a mixture of six rhythms that drift, with noise, scale and level of its own."""
    wander = np.cumsum(rng.normal(size=(n, 6)) * 0.002, axis=0)
    phase = 2 * np.pi * np.arange(n)[:, None] / rng.uniform(15, 60, 6) + wander
    weights = rng.normal(size=(6, channels)) * (rng.random((6, channels)) < 0.4)
    weights[rng.integers(0, 6, channels), np.arange(channels)] += 1
    x = np.sin(phase) @ weights
    x += 0.1 * x.std(axis=0) * rng.normal(size=x.shape)
    return x * rng.uniform(0.1, 50, channels) + rng.uniform(-100, 100, channels)


def break_sensor(x: np.ndarray, rows: slice, kind: str, rng: np.random.Generator) -> None:
    """Spoil some rows of one channel, in place."""
    part, spread = x[rows].copy(), x.std()
    if kind == "frozen":
        x[rows] = part[0]
    elif kind == "noisy":
        x[rows] = part + 1.5 * spread * rng.normal(size=len(part))
    elif kind == "inverted":
        x[rows] = 2 * part.mean() - part
    elif kind == "shifted":
        x[rows] = part + 6 * spread


KINDS = ("frozen", "noisy", "inverted", "shifted")


class Simple:
    """Distance of standardised rows from the main directions of training, averaged over patches.

    Two signals: the distance itself, and how fast it changes.
    """

    def __init__(self, train: np.ndarray) -> None:
        self.mean, self.spread = train.mean(axis=0), train.std(axis=0)
        z = (train - self.mean) / self.spread
        directions = np.linalg.eigh(z.T @ z)[1].T[::-1]  # the main ones first
        self.rest = directions[min(8, z.shape[1] - 1) :]
        self.calls = 0

    def __call__(self, values: np.ndarray) -> dict[str, np.ndarray]:
        self.calls += 1
        z = (values - self.mean) / self.spread
        # einsum, because many small products are slow where BLAS threads fight for a core.
        outside = np.einsum("nd,kd->nk", z, self.rest)
        distance = np.sqrt(np.square(outside).mean(axis=1))  # (n,)
        change = np.abs(np.diff(distance, prepend=distance[0]))
        patches = {"position": distance, "direction": change}
        rows = {name: _rows(sliding_window_view(x, PATCH).mean(1)) for name, x in patches.items()}
        return {**rows, "score": rows["position"] * (1 + rows["direction"])}


def _rows(patches: np.ndarray) -> np.ndarray:
    """A row's score is the mean over the patches that cover it."""
    weights = np.ones(PATCH)
    total = np.convolve(patches, weights)
    return total / np.convolve(np.ones(len(patches)), weights)
