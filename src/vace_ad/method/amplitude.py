"""Amplitude: what the patch normalisation removes, or hides.

For windows of several lengths, each channel's mean (level) and log-deviation (scale) are held
against their training envelope, and so is the log-deviation of what the other channels do not
foretell (relation); single rows are held against the rows around them (spike). A level that stays
outside becomes the new normal at a stated rate, and a signal that speaks all the time loses
weight, both from the past alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.method.drift import past_average, weighed
from vace_ad.method.folds import contiguous_folds
from vace_ad.method.patches import grid_to_rows
from vace_ad.method.relation import Relation
from vace_ad.method.spikes import Spikes

Array = NDArray[np.float64]

EDGE = 0.01  # share of training windows beyond the envelope on either side
NARROWEST = 0.3  # width of an envelope at least, in units of the channel's deviation
DEVIATION_FLOOR = 0.2  # added to a window's deviation before the logarithm
FARTHEST = 1e4  # deviations beyond which a value counts no more
STEPS = 8  # windows that cover a row
MOST_WINDOWS = 20_000  # that an envelope is learned from
BLOCK = 2048  # windows held at a time
WEIGHTS = np.array([[0.5, 1.0], [0.5, 1.0], [0.0, 0.5]])  # window × (level, scale)
RELATION_WEIGHTS = np.array([0.5, 0.5])  # of the longest windows
SIGNALS = ("level", "scale", "spike", "relation")


class Channels(NamedTuple):
    """The units in which channels are compared."""

    mean: Array  # (n_channels,)
    scale: Array  # (n_channels,)

    @classmethod
    def of(cls, parts: Sequence[Array]) -> Channels:
        """Mean and deviation of the training rows; a constant channel counts in per cents."""
        n = sum(map(len, parts))
        centre = parts[0][0]  # any row: keeps a huge offset from eating the variance
        mean = sum((part - centre).sum(axis=0) for part in parts) / n + centre
        scale = np.sqrt(sum(((part - mean) ** 2).sum(axis=0) for part in parts) / n)
        level = np.abs(mean)
        constant = scale <= 1e-14 * level
        scale = np.where(constant, np.where(level > 0, 0.01 * level, 1.0), scale)
        return cls(np.asarray(mean), scale)

    def scaled(self, rows: Array) -> Array:
        """Rows in deviations from the training mean, within ±FARTHEST."""
        return np.clip((rows - self.mean) / self.scale, -FARTHEST, FARTHEST)


class State(NamedTuple):
    """What one window length has been used to."""

    above: Array  # (2 · n_channels,) average excess above the envelope
    below: Array  # (2 · n_channels,)
    evidence: Array  # (2,), average evidence of level and scale


class Used(NamedTuple):
    """What amplitude has been used to."""

    windows: tuple[State, ...]  # for each window length
    spikes: Array  # (1,), average evidence
    relation: tuple[State, ...]  # for each of its window lengths


@dataclass(frozen=True)
class Envelope:
    """The range of window means and log-deviations in training, for one window length."""

    window: int
    low: Array  # (2 · n_channels,)
    high: Array  # (2 · n_channels,)
    usual: Array  # (2,), mean evidence of held-out training rows, of level and scale

    @classmethod
    def fit(cls, parts: Sequence[Array], window: int) -> tuple[Envelope, list[Array]]:
        """The envelope of scaled training rows; their evidence (2, n_rows) a part, held out."""
        step = _step(window)
        counts = [(len(part) - window) // step + 1 for part in parts]
        thin = max(1, -(-sum(counts) // MOST_WINDOWS))
        features = np.concatenate([_features(part, window, step * thin) for part in parts])
        first = np.cumsum([0] + [len(part) for part in parts])
        starts = np.concatenate(
            [
                np.arange(0, len(p) - window + 1, step * thin) + a
                for p, a in zip(parts, first, strict=False)
            ]
        )
        sums = np.empty((2, len(features)))
        for fit, held in contiguous_folds(starts, window):
            low, high = _edges(features[fit])
            above, below = _excess(features[held], low, high)
            sums[:, held] = _halves(np.log1p(above + below))
        rows = []
        done = 0
        for part in parts:
            n = (len(part) - window) // (step * thin) + 1
            held_out = sums[:, done : done + n]
            rows.append(np.log1p(_to_rows(held_out, window, step * thin, len(part))))
            done += n
        usual = np.concatenate(rows, axis=1).mean(axis=1)
        weighted = [evidence / (1 + usual[:, None]) for evidence in rows]
        return cls(window, *_edges(features), usual), weighted

    def start(self) -> State:
        """What a series is used to before its first row."""
        zeros = np.zeros_like(self.low)
        return State(zeros, zeros, self.usual)

    def evidence(self, rows: Array, state: State, half_life: float) -> tuple[Array, State]:
        """Evidence (2, n) of scaled rows (n, n_channels), level and scale, and the state after."""
        sums = []
        last = len(rows) - self.window
        for a in range(0, last + 1, self.step * BLOCK):
            part = rows[a : a + self.step * (BLOCK - 1) + self.window]
            found, state = self.window_sums(part, state, half_life)
            sums.append(found)
        spread = _to_rows(np.concatenate(sums, axis=1), self.window, self.step, len(rows))
        return self.weigh(spread, state, half_life)

    @property
    def step(self) -> int:
        """Rows from one window to the next."""
        return _step(self.window)

    def window_sums(self, rows: Array, state: State, half_life: float) -> tuple[Array, State]:
        """Fresh excess of the windows of scaled rows, summed over channels, (2, n_windows)."""
        features = _features(rows, self.window, self.step)
        above, below = _excess(features, self.low, self.high)
        used_up, last_up = past_average(above, state.above, half_life / self.step)
        used_down, last_down = past_average(below, state.below, half_life / self.step)
        fresh = np.maximum(above - used_up, 0) + np.maximum(below - used_down, 0)
        sums = _halves(np.log1p(fresh / (1 + used_up + used_down)))
        return sums, state._replace(above=last_up, below=last_down)

    def weigh(self, rows: Array, state: State, half_life: float) -> tuple[Array, State]:
        """Sums (2, n) spread to rows as evidence, weighed by how much of it there usually is."""
        evidence, last = weighed(np.log1p(rows), state.evidence, half_life)
        return evidence, state._replace(evidence=last)


@dataclass(frozen=True)
class Amplitude:
    """All that was learned about amplitude, in units of the training rows."""

    channels: Channels
    envelopes: tuple[Envelope, ...]
    spikes: Spikes
    relation: Relation
    relation_envelopes: tuple[Envelope, ...]  # of its residuals, for the longest windows
    half_life: int  # rows

    @classmethod
    def fit(
        cls, parts: Sequence[Array], windows: Sequence[int], half_life: int
    ) -> tuple[Amplitude, list[Array]]:
        """Learn from training parts; also their evidence (4, n_rows) each, held out."""
        channels = Channels.of(parts)
        scaled = [channels.scaled(part) for part in parts]
        envelopes, of_windows = _fit_envelopes(scaled, windows)
        spikes, spiky = Spikes.fit(scaled)
        relation, residuals = Relation.fit(scaled)
        loose, related = _fit_envelopes(residuals, windows[: len(RELATION_WEIGHTS)])
        held = [signals(*found) for found in zip(of_windows, spiky, related, strict=True)]
        return cls(channels, envelopes, spikes, relation, loose, half_life), held

    def start(self) -> Used:
        """What a series is used to before its first row."""
        windows, related = (
            tuple(envelope.start() for envelope in envelopes)
            for envelopes in (self.envelopes, self.relation_envelopes)
        )
        return Used(windows, self.spikes.usual, related)

    def evidence(self, rows: Array, used: Used) -> tuple[Array, Used]:
        """Evidence (4, n) of rows (n, n_channels), and what it is used to after them."""
        scaled = self.channels.scaled(rows)
        of_windows, windows = self._along(self.envelopes, scaled, used.windows)
        spike, spikes = self.spikes.evidence(scaled, used.spikes, self.half_life)
        residuals = self.relation.residuals(scaled, out=scaled)  # a long table stays one copy
        related, relation = self._along(self.relation_envelopes, residuals, used.relation)
        return signals(of_windows, spike, related), Used(windows, spikes, relation)

    def _along(
        self, envelopes: Sequence[Envelope], rows: Array, states: Sequence[State]
    ) -> tuple[list[Array], tuple[State, ...]]:
        """The evidence (2, n) of each envelope, and the states after the rows."""
        found = [
            envelope.evidence(rows, state, self.half_life)
            for envelope, state in zip(envelopes, states, strict=True)
        ]
        return [evidence for evidence, _ in found], tuple(state for _, state in found)


def signals(windows: Sequence[Array], spike: Array, related: Sequence[Array]) -> Array:
    """Level, scale, spike and relation as they count in the score, (4, n_rows).

    `windows` holds the evidence (2, n_rows) of each window length and `related` that of the
    relation's residuals; `spike` is (1, n_rows).
    """
    levels_and_scales = np.einsum("wkn,wk->kn", np.stack(windows), WEIGHTS)
    relation = np.einsum("wkn,w->kn", np.stack(related), RELATION_WEIGHTS)[1:]  # scale alone
    return np.concatenate([levels_and_scales, spike, relation])


def _fit_envelopes(
    parts: Sequence[Array], windows: Sequence[int]
) -> tuple[tuple[Envelope, ...], list[list[Array]]]:
    """An envelope for each window length, and for each part, the evidence of each, held out."""
    fitted = [Envelope.fit(parts, window) for window in windows]
    by_part = zip(*(rows for _, rows in fitted), strict=True)
    return tuple(envelope for envelope, _ in fitted), [list(rows) for rows in by_part]


def _step(window: int) -> int:
    return max(1, window // STEPS)


def _features(scaled: Array, window: int, step: int) -> Array:
    """Mean and log-deviation of every `step`-th window, (n_windows, 2 · n_channels)."""
    view = sliding_window_view(scaled, window, axis=0)[::step]  # (n_windows, n_channels, window)
    out = np.empty((len(view), 2 * scaled.shape[1]))
    n_channels = scaled.shape[1]
    size = max(1, 2**22 // (window * n_channels))  # windows whose copies stay small
    for a in range(0, len(view), size):
        part = view[a : a + size]
        out[a : a + size, :n_channels] = part.mean(axis=2)
        out[a : a + size, n_channels:] = np.log(part.std(axis=2) + DEVIATION_FLOOR)
    return out


def _halves(values: Array) -> Array:
    """Sums over the features of level and over those of scale, (2, n_windows)."""
    half = values.shape[1] // 2
    return np.stack([values[:, :half].sum(axis=1), values[:, half:].sum(axis=1)])


def _edges(features: Array) -> tuple[Array, Array]:
    low, high = np.quantile(features, [EDGE, 1 - EDGE], axis=0)
    return low, high


def _excess(features: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """How far features lie above and below their envelope, in widths of it."""
    width = np.maximum(high - low, NARROWEST)
    return np.maximum(features - high, 0) / width, np.maximum(low - features, 0) / width


def _to_rows(values: Array, window: int, step: int, n_rows: int) -> Array:
    """A row's value is the mean over the windows that cover it, for each line of `values`."""
    return np.stack([grid_to_rows(line, step, n_rows, window) for line in values])
