"""Sensors that hang together, and faults in one of them."""

from __future__ import annotations

import numpy as np


def plant(n: int, channels: int, rng: np.random.Generator) -> np.ndarray:
    """Each channel a mixture of six rhythms that drift, with noise, scale and level of its own."""
    wander = np.cumsum(rng.normal(size=(n, 6)) * 0.002, axis=0)
    phase = 2 * np.pi * np.arange(n)[:, None] / rng.uniform(15, 60, 6) + wander
    weights = rng.normal(size=(6, channels)) * (rng.random((6, channels)) < 0.4)
    weights[rng.integers(0, 6, channels), np.arange(channels)] += 1
    x = np.sin(phase) @ weights
    x += 0.1 * x.std(axis=0) * rng.normal(size=x.shape)
    return x * rng.uniform(0.1, 50, channels) + rng.uniform(-100, 100, channels)


def coupled(n: int, channels: int, seed: int) -> np.ndarray:
    """Each channel a mixture of three slow random movements, with noise of its own."""
    rng = np.random.default_rng(seed)
    steps, slow = rng.normal(size=(n, 3)), np.zeros((n, 3))
    for t in range(1, n):
        slow[t] = 0.9 * slow[t - 1] + steps[t]
    return slow @ rng.normal(size=(3, channels)) + 0.7 * rng.normal(size=(n, channels))


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
