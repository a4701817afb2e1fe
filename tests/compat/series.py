"""Two sensors with seasonality, and a stretch in which one is wrong."""

from __future__ import annotations

import numpy as np

QUICK = {"patch_length": 16, "settings": {"encoders": 1, "engine": "numpy"}}
TRAIN, WRONG = 600, slice(800, 840)


def series(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.sin(2 * np.pi * np.arange(1000)[:, None] / [12, 31]) + 0.1 * rng.normal(size=(1000, 2))
    x[WRONG, 1] = 4
    return x
