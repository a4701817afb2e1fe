"""Windows of several lengths: each channel's mean and log-deviation against its training envelope.

A window of w rows consists of `STEPS` blocks of w / STEPS rows, and one starts at every block. The
mean and the sum of squares of a block are worked out once and put together for every window that
holds it. A level that stays outside its envelope becomes the new normal at a stated rate, and a
signal that speaks all the time loses weight, both from the past alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.folds import contiguous_folds
from vace_ad.signals.protocol import Arrays, Layout, prefixed, under
from vace_ad.signals.rows import added, grid_to_rows

Array = NDArray[np.float64]

STEPS = 8  # windows that cover a row
MOST_WINDOWS = 20_000  # that an envelope is learned from
_ENVELOPE = ("low", "high", "usual")


class Windowed(NamedTuple):
    """One window length, and the lines of evidence it counts in."""

    part: int  # of the longest window that it covers
    weights: tuple[tuple[str, float], ...]  # (line, weight); "level" is the mean's, others the
    # log-deviation's


@dataclass(frozen=True)
class Bounds:
    """How wide envelopes are."""

    edge: float = 0.01  # share of training windows beyond the envelope on either side
    narrowest: float = 0.3  # width of an envelope at least, in units of the channel's deviation
    deviation_floor: float = 0.2  # added to a window's deviation before the logarithm


@dataclass(frozen=True)
class Envelope:
    """The range of window features in training, for one window length."""

    windowed: Windowed
    blocks: int  # a window consists of
    step: int  # rows a block, and rows from one window to the next
    low: Array  # (n_features,): for each line in turn, that of each channel
    high: Array  # (n_features,)
    usual: Array  # (n_lines,), mean evidence of held-out training rows
    bounds: Bounds

    @property
    def window(self) -> int:
        """Rows that a window covers."""
        return self.blocks * self.step

    @classmethod
    def fit(
        cls, parts: Sequence[Array], windowed: Windowed, length: int, bounds: Bounds
    ) -> tuple[Self, list[Array]]:
        """The envelope of scaled training rows; their evidence (n_lines, n_rows), held out."""
        blocks, step = _sizes(windowed, length)
        window = blocks * step
        counts = [(len(part) - window) // step + 1 for part in parts]
        thin = max(1, -(-sum(counts) // MOST_WINDOWS))
        stride = step * thin
        features = np.concatenate(
            [
                features_of(block_moments(part, step), blocks, step, windowed, bounds)[::thin]
                for part in parts
            ]
        )
        first = np.cumsum([0] + [len(part) for part in parts])
        starts = np.concatenate(
            [
                np.arange(0, len(p) - window + 1, stride) + a
                for p, a in zip(parts, first, strict=False)
            ]
        )
        n_lines = len(windowed.weights)
        sums = np.empty((n_lines, len(features)))
        for fit, held in contiguous_folds(starts, window):
            low, high = _edges(features[fit], bounds)
            excess = _excess(features[held], low, high, _widths(low, high, bounds))
            sums[:, held] = by_line(both_sides(excess), n_lines)
        rows, done = [], 0
        for part in parts:
            n = (len(part) - window) // stride + 1
            lines = sums[:, done : done + n]
            rows.append(
                np.log1p(np.stack([grid_to_rows(x, stride, len(part), window) for x in lines]))
            )
            done += n
        usual = np.concatenate(rows, axis=1).mean(axis=1)
        held_out = [evidence / (1 + usual[:, None]) for evidence in rows]
        return cls(windowed, blocks, step, *_edges(features, bounds), usual, bounds), held_out

    @cached_property
    def _widths(self) -> Array:
        return _widths(self.low, self.high, self.bounds)

    def excess(self, features: Array) -> Array:
        """How far features (n, n_features) lie above, then below the envelope, in its widths."""
        return _excess(features, self.low, self.high, self._widths)


@dataclass(frozen=True)
class Windows:
    """Envelopes for several window lengths, whose evidence adds up to a few lines."""

    envelopes: tuple[Envelope, ...]
    half_life: int  # rows
    warm: int  # first rows of a stream, whose windows are its baseline from the start
    bounds: Bounds

    @classmethod
    def fit(
        cls, parts: Sequence[Array], windowed: Sequence[Windowed], config: VACEConfig
    ) -> tuple[Self, list[Array]]:
        """Learn from scaled rows; also their evidence (n_lines, n_rows) a part, held out."""
        bounds = Bounds()
        fitted = [Envelope.fit(parts, each, config.length, bounds) for each in windowed]
        envelopes = tuple(envelope for envelope, _ in fitted)
        windows = cls(envelopes, config.drift_half_life, config.warm, bounds)
        by_part = zip(*(rows for _, rows in fitted), strict=True)
        return windows, [windows.weighted(list(rows)) for rows in by_part]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The lines of evidence, in order."""
        return tuple(dict.fromkeys(line for line, _ in self._terms))

    @cached_property
    def _terms(self) -> list[tuple[str, float]]:
        """What all window lengths give, end to end: the line and the weight that it counts with."""
        return [term for envelope in self.envelopes for term in envelope.windowed.weights]

    @cached_property
    def _sums(self) -> tuple[NDArray[np.intp], Array]:
        """For each line, the places and weights of its terms, (n, n_lines) and (n, n_lines, 1).

        Lines of fewer terms are filled up with the weight 0.
        """
        each = [[i for i, (line, _) in enumerate(self._terms) if line == n] for n in self.names]
        most = max(map(len, each))
        places = np.array([own + own[:1] * (most - len(own)) for own in each]).T
        weights = [[self._terms[i][1] for i in own] + [0.0] * (most - len(own)) for own in each]
        return places, np.array(weights).T[:, :, None]

    def weighted(self, found: Sequence[Array]) -> Array:
        """The lines (n_lines, n) as they count, from those of each window length."""
        places, weights = self._sums
        return added(weights * np.concatenate(found)[places])

    def constants(self) -> dict[str, Any]:
        """Weights and bounds."""
        return {
            "windows": [[e.windowed.part, dict(e.windowed.weights)] for e in self.envelopes],
            **asdict(self.bounds),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned."""
        found: dict[str, NDArray[Any]] = {}
        for i, envelope in enumerate(self.envelopes):
            found |= prefixed(str(i), {name: getattr(envelope, name) for name in _ENVELOPE})
        return found

    @staticmethod
    def layout(config: VACEConfig, n_channels: int, constants: Mapping[str, Any]) -> Layout:
        """What `arrays` gives."""
        layout: Layout = {}
        for i, (_, weights) in enumerate(constants["windows"]):
            size = len(weights) * n_channels
            for name, length in zip(_ENVELOPE, (size, size, len(weights)), strict=True):
                layout[f"{i}.{name}"] = ("F64", (length,))
        return layout

    @classmethod
    def restored(cls, arrays: Arrays, config: VACEConfig, constants: Mapping[str, Any]) -> Self:
        """The reverse of `arrays`."""
        bounds = Bounds(**{name: constants[name] for name in asdict(Bounds())})
        envelopes = []
        for i, (part, weights) in enumerate(constants["windows"]):
            windowed = Windowed(int(part), tuple(weights.items()))
            own = under(str(i), arrays)
            sizes = _sizes(windowed, config.length)
            envelopes.append(
                Envelope(windowed, *sizes, own["low"], own["high"], own["usual"], bounds)
            )
        return cls(tuple(envelopes), config.drift_half_life, config.warm, bounds)


def _sizes(windowed: Windowed, length: int) -> tuple[int, int]:
    """Blocks a window and rows a block."""
    window = max(2, length // windowed.part)
    return min(STEPS, window), max(1, window // STEPS)


def block_moments(rows: Array, step: int) -> Array:
    """Means, then sums of squared deviations, of blocks of `step` rows, (n_blocks, 2 n_channels).

    A block's bits depend on its own rows alone.
    """
    n, d = len(rows) // step, rows.shape[1]
    moments = np.zeros((n, 2 * d))
    if step == 1:
        moments[:, :d] = rows
        return moments
    blocks = rows[: n * step].reshape(n, step, d)
    mean = moments[:, :d]
    np.divide(_in_order(blocks), step, out=mean)
    moments[:, d:] = _in_order(blocks, mean)
    return moments


def features_of(
    moments: Array,  # (n_blocks, 2 n_channels)
    blocks: int,
    step: int,
    windowed: Windowed,
    bounds: Bounds,
) -> Array:
    """The features (n_windows, n_features) of every window of `blocks` blocks."""
    n, d = len(moments) - blocks + 1, moments.shape[1] // 2
    windows = moments[None]  # (n_windows, blocks, 2 n_channels)
    if n > 1:
        windows = sliding_window_view(moments, blocks, axis=0).transpose(0, 2, 1)
    mean = _in_order(windows[:, :, :d])
    mean /= blocks
    lines = [line for line, _ in windowed.weights]
    if lines == ["level"]:
        return mean
    total = _in_order(windows[:, :, :d], mean)
    total *= step
    if step > 1:
        total += _in_order(windows[:, :, d:])
    total /= blocks * step
    total = np.log(np.sqrt(total) + bounds.deviation_floor)
    if len(lines) == 1:
        return total
    return np.concatenate([mean if line == "level" else total for line in lines], axis=1)


def _in_order(values: Array, mean: Array | None = None) -> Array:
    """Sums (n, n_channels) of values (n, k, n_channels), or of squared distances from a mean.

    One after the other for all n at once, so that bits do not depend on how many come together.
    """
    if len(values) == 1:  # the same order, in one call
        off = values[0] if mean is None else values[0] - mean
        return np.asarray(np.add.accumulate(off if mean is None else off * off)[-1:])
    total = np.zeros((len(values), values.shape[2]))
    for i in range(values.shape[1]):
        part = values[:, i]
        total += part if mean is None else (part - mean) ** 2
    return total


def by_line(values: Array, n_lines: int) -> Array:
    """The Euclidean length over the channels of each line, (n_lines, n_windows).

    One channel far outside counts more than many a little outside, which a sum would drown it in.
    """
    squares = (values * values).reshape(len(values), n_lines, -1)
    return np.asarray(np.sqrt(squares.sum(axis=2)).T)


def _edges(features: Array, bounds: Bounds) -> tuple[Array, Array]:
    low, high = np.quantile(features, [bounds.edge, 1 - bounds.edge], axis=0)
    return low, high


def _widths(low: Array, high: Array, bounds: Bounds) -> Array:
    """The widths of envelopes, once for either side, (2 n_features,)."""
    return np.tile(np.maximum(high - low, bounds.narrowest), 2)


def _excess(features: Array, low: Array, high: Array, widths: Array) -> Array:
    """How far features lie above, then below their envelope, in widths, (n, 2 n_features)."""
    f = features.shape[1]
    found = np.empty((len(features), 2 * f))
    np.subtract(features, high, out=found[:, :f])
    np.subtract(low, features, out=found[:, f:])
    np.maximum(found, 0, out=found)
    found /= widths
    return found


def both_sides(excess: Array) -> Array:
    """The excess above plus that below, (n, n_features)."""
    f = excess.shape[1] // 2
    return np.asarray(excess[:, :f] + excess[:, f:])
