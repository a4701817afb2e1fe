"""Clean processes that are linear or seasonal, have regimes or a long memory."""

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
    waves,
    white,
)


def correlated(n: int, rng: Rng) -> Array:
    return mixed(white(n, rng), rng)


def vector_autoregression(n: int, rng: Rng) -> Array:
    """Each row follows the row before through all channels; spectral radius 0.9."""
    a = rng.normal(size=(CHANNELS, CHANNELS))
    a *= 0.9 / np.abs(np.linalg.eigvals(a)).max()
    x = white(n + 200, rng)
    for i in range(1, len(x)):
        x[i] += a @ x[i - 1]
    return x[200:]


def followers(n: int, rng: Rng) -> Array:
    """One channel leads, the others follow it some rows later."""
    lead = slow(n + 30, rng, 20, 1)[:, 0]
    late = np.column_stack([lead[30 - k : n + 30 - k] for k in (0, 5, 12, 30)])
    return late + 0.2 * white(n, rng)


def noisy_at_noon(n: int, rng: Rng) -> Array:
    """Noise three times as wide at one phase as at the other."""
    rhythm = waves(n, rng, 96)
    return mixed(rhythm, rng) + 0.3 * (2 + rhythm) * white(n, rng) / 2


def noise_that_wanders(n: int, rng: Rng) -> Array:
    return seasonal(48)(n, rng) + 0.3 * np.exp(0.5 * slow(n, rng, 300)) * white(n, rng)


def amplitude_that_wanders(n: int, rng: Rng) -> Array:
    swing = (1 + 0.3 * slow(n, rng, 200, 2)) * waves(n, rng, 24, 60)
    return mixed(swing, rng) + 0.2 * white(n, rng)


def phase_that_wanders(n: int, rng: Rng) -> Array:
    phase = np.cumsum(1 + 0.1 * rng.normal(size=(n, 2)), axis=0) * 2 * np.pi / [30, 50]
    return mixed(np.sin(phase), rng) + 0.2 * white(n, rng)


def sawtooth(n: int, rng: Rng) -> Array:
    ramps = (np.arange(n)[:, None] + rng.integers(80, size=2)) % [40, 80] / [40, 80]
    return mixed(ramps, rng) + 0.05 * white(n, rng)


def batches(n: int, rng: Rng) -> Array:
    """Batches of 90 to 110 rows, each with a filling, a holding and an emptying part."""
    lengths = rng.integers(90, 111, size=n // 90 + 2)
    shape = np.concatenate([np.linspace(0, 1, k) for k in lengths])[:n]
    hidden = np.column_stack([np.minimum(1, 4 * shape), np.minimum(1, 4 * (1 - shape))])
    return mixed(hidden, rng) + 0.05 * white(n, rng)


def pulses(n: int, rng: Rng) -> Array:
    """Beats like those of a heart, 45 to 55 rows apart."""
    beats = np.zeros(n)
    beats[np.cumsum(rng.integers(45, 56, size=n // 56))] = 1
    wave = np.exp(-0.5 * ((np.arange(21) - 6) / 1.5) ** 2) * 3
    return mixed(np.convolve(beats, wave)[:n, None], rng) + 0.1 * white(n, rng)


def day_and_week(n: int, rng: Rng) -> Array:
    """Rhythms of 144 and 1,008 rows, weekends lower."""
    rows = np.arange(n)
    weekend = (rows // 144 % 7 >= 5).astype(float)
    hidden = np.column_stack([np.sin(2 * np.pi * rows / 144), weekend])
    return mixed(hidden, rng) + 0.2 * white(n, rng)


def levels(*weights: float, stay: float = 100) -> Process:
    """Working points that change, with noise around them."""

    def rows(n: int, rng: Rng) -> Array:
        points = 3 * rng.normal(size=(len(weights), CHANNELS))
        return points[states(n, rng, stay, weights)] + slow(n, rng, 5)

    return rows


def correlations_that_change(n: int, rng: Rng) -> Array:
    mixes = rng.normal(size=(2, CHANNELS, CHANNELS))
    which = states(n, rng, 150, (0.5, 0.5))
    return np.einsum("nij,nj->ni", mixes[which], white(n, rng))


def ramps_between_levels(n: int, rng: Rng) -> Array:
    return np.asarray(lfilter(np.ones(30) / 30, [1.0], levels(0.5, 0.5)(n + 30, rng), axis=0)[30:])


def pink(n: int, rng: Rng) -> Array:
    """1/f noise, by its spectrum."""
    spectrum = np.fft.rfft(rng.normal(size=(2 * n, CHANNELS)), axis=0)
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))[:, None]
    spectrum[0] = 0
    x = np.fft.irfft(spectrum, axis=0)[:n]
    return np.asarray(x / x.std(axis=0))


def reverting_walk(n: int, rng: Rng) -> Array:
    return slow(n, rng, 500)


def walk_between_walls(n: int, rng: Rng) -> Array:
    """A random walk that is reflected at 0 and 1."""
    walk = np.cumsum(0.05 * white(n, rng), axis=0) + rng.random(CHANNELS)
    return np.asarray(np.abs((walk + 1) % 2 - 1))


KINDS: tuple[Kind, ...] = (
    Kind("white noise", "linear", white),
    Kind("white noise, correlated", "linear", correlated),
    Kind("AR 0.9", "linear", autoregressive(0.9)),
    Kind("AR 0.99", "linear", autoregressive(0.99)),
    Kind("AR 2, swinging", "linear", autoregressive(1.8, -0.9)),
    Kind("VAR", "linear", vector_autoregression),
    Kind("followers", "linear", followers),
    Kind("one rhythm", "seasonal", seasonal(24)),
    Kind("day and week", "seasonal", day_and_week),
    Kind("noise by phase", "seasonal", noisy_at_noon),
    Kind("noise wanders", "seasonal", noise_that_wanders),
    Kind("amplitude wanders", "seasonal", amplitude_that_wanders),
    Kind("phase wanders", "seasonal", phase_that_wanders),
    Kind("sawtooth", "seasonal", sawtooth),
    Kind("batches", "seasonal", batches),
    Kind("pulses", "seasonal", pulses),
    Kind("two levels", "regimes", levels(0.5, 0.5)),
    Kind("four levels", "regimes", levels(0.4, 0.3, 0.2, 0.1)),
    Kind("ramps between levels", "regimes", ramps_between_levels),
    Kind("other correlations", "regimes", correlations_that_change),
    Kind("1/f", "long memory", pink),
    Kind("walk with reversion", "long memory", reverting_walk),
    Kind("walk between walls", "long memory", walk_between_walls),
)
