"""The budget of false alarms as a statistical promise, kept on clean rows of four kinds.

`make budgets` counts longer, on many more kinds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from alarms.feeds import Toy, run_feed
from vace_ad.alarms.budget import Budget

TRAIN, TEST, SEEDS, CHANNELS = 5000, 10_000, 3, 3
BUDGET = Budget(10, "rows")  # one false alarm in 1,000 rows
# What limits learned from a finite sample may add, where the promise itself is a mean over samples.
LEARNED = 1.5
CERTAINTY = 1e-4  # that a promise which is kept fails here


def white(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, CHANNELS))


def autoregressive(n: int, rng: np.random.Generator) -> np.ndarray:
    return lfilter([1.0], [1.0, -0.8], white(n + 500, rng), axis=0)[500:]


def daily(n: int, rng: np.random.Generator) -> np.ndarray:
    phase = np.add.outer(np.arange(n) / 24, [0.0, 0.2, 0.5])
    return np.sin(2 * np.pi * phase) + 0.3 * white(n, rng)


def counts(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson([2.0, 10.0, 40.0], size=(n, CHANNELS)).astype(float)


@pytest.mark.parametrize("kind", [white, autoregressive, daily, counts])
def test_clean_rows_spend_no_more_than_their_budget(
    kind: Callable[[int, np.random.Generator], np.ndarray],
) -> None:
    alarms = 0
    for seed in range(SEEDS):
        rows = kind(TRAIN + TEST, np.random.default_rng(seed))
        alarms += len(run_feed(Toy(rows[:TRAIN]), rows[TRAIN:], budget=BUDGET).events)
    rate = BUDGET.rate(None)
    assert rate is not None
    assert alarms <= binom.isf(CERTAINTY, SEEDS * TEST, LEARNED * rate)
    assert alarms > 0  # the budget is there to be spent: silence would cost faults
