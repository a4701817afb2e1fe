"""A small real detector for feeds of `feeds.py`."""

from __future__ import annotations

from functools import cache

import numpy as np

from live.feeds import CHANNELS, START, STEP
from vace_ad import VACE
from vace_ad.alarms.budget import Budget
from vace_ad.frames import Table
from vace_ad.live.detector import Detectors

BUDGET = Budget(1, "week")


@cache
def detector(step=STEP, middle=(0.0, 0.0, 0.0), seed=99, n_rows=1500):
    """Fitted on unit noise around a middle, the same on every call."""
    noise = np.random.default_rng(seed).normal(size=(n_rows, len(CHANNELS)))
    times = (START - np.arange(n_rows, 0, -1) * step).view("datetime64[ns]")
    table = Table(noise + np.asarray(middle), CHANNELS, times)
    return VACE(patch_length=16, encoders=1).fit(table)


def save_model(path, **more):
    """Write its file; a configuration of `feeds.settings` finds it there."""
    detector(**more).save(path)


def core():
    return Detectors(BUDGET)
