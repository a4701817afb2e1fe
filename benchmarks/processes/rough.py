"""Clean processes with heavy tails, rare happenings, changing noise, counts, poor measurement."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from processes.blocks import (
    CHANNELS,
    Array,
    Kind,
    Process,
    Rng,
    autoregressive,
    mixed,
    seasonal,
    slow,
    states,
    student,
    waves,
    white,
)


def lognormal(n: int, rng: Rng) -> Array:
    return np.exp(0.7 * slow(n, rng, 5))


def spikes(share: float, *, together: bool) -> Process:
    """Single high readings in a share of the rows, in one channel each or in all."""

    def rows(n: int, rng: Rng) -> Array:
        x = slow(n, rng, 10)
        hit = rng.random((n, 1 if together else CHANNELS)) < share
        return x + hit * rng.uniform(6, 12, size=x.shape)

    return rows


def bursts(n: int, rng: Rng) -> Array:
    """Ten rows of load in every 500 or so."""
    load = lfilter(np.ones(10), [1.0], (rng.random(n) < 1 / 500).astype(float))[:, None]
    return mixed(np.hstack([load, load * rng.random((n, 1))]), rng) + 0.3 * white(n, rng)


def garch(noise: Process) -> Process:
    """GARCH(1,1): deviation follows what was just seen."""

    def rows(n: int, rng: Rng) -> Array:
        draws = noise(n + 500, rng)
        x, variance = np.zeros_like(draws), np.ones(CHANNELS)
        for i in range(1, len(x)):
            variance = 0.05 + 0.1 * x[i - 1] ** 2 + 0.85 * variance
            x[i] = np.sqrt(variance) * draws[i]
        return x[500:]

    return rows


def stochastic_volatility(n: int, rng: Rng) -> Array:
    return np.asarray(np.exp(0.6 * slow(n, rng, 50)) * white(n, rng))


def quiet_and_loud(n: int, rng: Rng) -> Array:
    loud = np.where(states(n, rng, 100, (0.7, 0.3)), 3.0, 1.0)
    return loud[:, None] * slow(n, rng, 5)


def few(n: int, rng: Rng) -> Array:
    return rng.poisson(0.5, size=(n, CHANNELS)).astype(float)


def requests(n: int, rng: Rng) -> Array:
    """Counts that follow the day."""
    return rng.poisson(20 * (1.2 + waves(n, rng, 144, 144, 144, 144))).astype(float)


def clustered_counts(n: int, rng: Rng) -> Array:
    return rng.negative_binomial(2, 0.1, size=(n, CHANNELS)).astype(float)


def mostly_zero(n: int, rng: Rng) -> Array:
    return (rng.random((n, CHANNELS)) < 0.02) * rng.poisson(5, size=(n, CHANNELS)).astype(float)


def queues(n: int, rng: Rng) -> Array:
    """Lengths of queues with a load of 0.8."""
    steps = rng.poisson(0.8, size=(n + 500, CHANNELS)) - 1
    total = np.cumsum(steps, axis=0)
    return (total - np.minimum(np.minimum.accumulate(total, axis=0), 0))[500:].astype(float)


def switches(n: int, rng: Rng) -> Array:
    """Channels that are 0 or 1."""
    each = [states(n, rng, 60, (0.5, 0.5)) for _ in range(CHANNELS)]
    return np.column_stack(each).astype(float)


def pump(n: int, rng: Rng) -> Array:
    """A pump that is on or off, with flow, pressure and temperature behind it."""
    on = states(n, rng, 80, (0.4, 0.6)).astype(float)
    flow = on * (5 + 0.3 * slow(n, rng, 30, 1)[:, 0])
    pressure = lfilter([0.2], [1.0, -0.8], flow) + 0.1 * rng.normal(size=n)
    warm = lfilter([0.01], [1.0, -0.99], on) + 0.01 * rng.normal(size=n)
    return np.column_stack([on, flow, pressure, warm])


def rare_switch(n: int, rng: Rng) -> Array:
    """A valve opens for some rows once in 400, and the other channels answer."""
    open_ = states(n, rng, 20, (0.95, 0.05)).astype(float)
    return np.column_stack([open_, slow(n, rng, 10, CHANNELS - 1) + 2 * open_[:, None]])


def quantised(n: int, rng: Rng) -> Array:
    return np.round(slow(n, rng, 20) * 4) / 4


def coarse_quantised(n: int, rng: Rng) -> Array:
    """Two or three values a channel, most of the time one."""
    return np.round(0.6 * slow(n, rng, 20))


def held(n: int, rng: Rng) -> Array:
    """Channels that are read every 1, 5, 15 and 60 rows and held in between."""
    x, rows = slow(n, rng, 40), np.arange(n)
    return np.column_stack([x[rows // k * k, j] for j, k in enumerate((1, 5, 15, 60))])


def saturated(n: int, rng: Rng) -> Array:
    return np.clip(slow(n, rng, 30), -1, 1)


def missing_cells(n: int, rng: Rng) -> Array:
    """One cell in fifty is missing."""
    x = autoregressive(0.9)(n, rng)
    x[rng.random(x.shape) < 0.02] = np.nan
    return x


def missing_stretches(n: int, rng: Rng) -> Array:
    """Sensors that are away for twenty rows now and then."""
    x = seasonal(40)(n, rng)
    for j in range(CHANNELS):
        x[states(n, rng, 20, (0.98, 0.02)) == 1, j] = np.nan
    return x


KINDS: tuple[Kind, ...] = (
    Kind("t3", "heavy tails", student(3)),
    Kind("t5", "heavy tails", student(5)),
    Kind("AR with t3", "heavy tails", autoregressive(0.8, noise=student(3))),
    Kind("rhythm with t5", "heavy tails", seasonal(48, noise=student(5))),
    Kind("lognormal", "heavy tails", lognormal),
    Kind("rare spikes", "rare", spikes(0.001, together=False)),
    Kind("rare spikes, together", "rare", spikes(0.003, together=True)),
    Kind("bursts", "rare", bursts),
    Kind("rare switch", "rare", rare_switch),
    Kind("GARCH", "volatility", garch(white)),
    Kind("GARCH with t5", "volatility", garch(student(5))),
    Kind("stochastic volatility", "volatility", stochastic_volatility),
    Kind("quiet and loud", "volatility", quiet_and_loud),
    Kind("few counts", "counts", few),
    Kind("requests", "counts", requests),
    Kind("clustered counts", "counts", clustered_counts),
    Kind("mostly zero", "counts", mostly_zero),
    Kind("queues", "counts", queues),
    Kind("switches", "on and off", switches),
    Kind("pump", "on and off", pump),
    Kind("quantised", "measurement", quantised),
    Kind("quantised coarsely", "measurement", coarse_quantised),
    Kind("held", "measurement", held),
    Kind("saturated", "measurement", saturated),
    Kind("missing cells", "measurement", missing_cells),
    Kind("missing stretches", "measurement", missing_stretches),
)
