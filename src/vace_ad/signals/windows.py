"""Windows of several lengths: each channel's mean and log-deviation against its training envelope.

A window of w rows consists of `STEPS` blocks of w / STEPS rows, and one starts at every block. The
mean and the sum of squares of a block are worked out once and put together for every window that
holds it. A level that stays outside its envelope becomes the new normal at a stated rate, and a
signal that speaks all the time loses weight, both from the past alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.folds import contiguous_folds
from vace_ad.signals.protocol import Arrays, Layout, prefixed, under
from vace_ad.signals.rows import grid_to_rows

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
                features_of(*block_moments(part, step), blocks, step, windowed, bounds)[::thin]
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
            above, below = _excess(features[held], *_edges(features[fit], bounds), bounds)
            sums[:, held] = by_line(above + below, n_lines)
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

    def excess(self, features: Array) -> tuple[Array, Array]:
        """How far features (n, n_features) lie above and below the envelope, in its widths."""
        return _excess(features, self.low, self.high, self.bounds)


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

    @property
    def names(self) -> tuple[str, ...]:
        """The lines of evidence, in order."""
        each = (line for envelope in self.envelopes for line, _ in envelope.windowed.weights)
        return tuple(dict.fromkeys(each))

    def weighted(self, found: Sequence[Array]) -> Array:
        """The lines (n_lines, n) as they count, from those of each window length."""
        names = self.names
        total = np.zeros((len(names), found[0].shape[1]))
        for envelope, lines in zip(self.envelopes, found, strict=True):
            for (name, weight), line in zip(envelope.windowed.weights, lines, strict=True):
                total[names.index(name)] += weight * line
        return total

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


def block_moments(rows: Array, step: int) -> tuple[Array, Array]:
    """Mean and sum of squared deviations of each block of `step` rows, (n_blocks, n_channels).

    Row after row of all blocks at once, so that a block's bits depend on its own rows alone.
    """
    n = len(rows) // step
    if step == 1:
        return rows[:n], np.zeros_like(rows[:n])
    blocks = rows[: n * step].reshape(n, step, rows.shape[1])
    mean = blocks[:, 0].copy()
    for i in range(1, step):
        mean += blocks[:, i]
    mean /= step
    squares = np.zeros_like(mean)
    for i in range(step):
        squares += (blocks[:, i] - mean) ** 2
    return mean, squares


def features_of(
    means: Array,  # (n_blocks, n_channels)
    squares: Array,  # (n_blocks, n_channels)
    blocks: int,
    step: int,
    windowed: Windowed,
    bounds: Bounds,
) -> Array:
    """The features (n_windows, n_features) of every window of `blocks` blocks."""
    n = len(means) - blocks + 1
    mean = _over_blocks(means, n) / blocks
    total = mean
    if any(line != "level" for line, _ in windowed.weights):
        total = _over_blocks(means, n, mean) * step
        if step > 1:
            total += _over_blocks(squares, n)
        total = np.log(np.sqrt(total / (blocks * step)) + bounds.deviation_floor)
    lines = [mean if line == "level" else total for line, _ in windowed.weights]
    return np.concatenate(lines, axis=1)


def _over_blocks(values: Array, n: int, mean: Array | None = None) -> Array:
    """Sums (n, n_channels) over the blocks of n windows, or of squared distances from a mean.

    Block after block, so that a window's bits do not depend on how many come at once.
    """
    if n == 1:  # the same order, in one call
        off = values if mean is None else (values - mean) ** 2
        return np.asarray(off.sum(axis=0, keepdims=True))
    total = np.zeros((n, values.shape[1]))
    for i in range(len(values) - n + 1):
        part = values[i : i + n]
        total += part if mean is None else (part - mean) ** 2
    return total


def by_line(values: Array, n_lines: int) -> Array:
    """The Euclidean length over the channels of each line, (n_lines, n_windows).

    One channel far outside counts more than many a little outside, which a sum would drown it in.
    """
    d = values.shape[1] // n_lines
    squares = values * values
    return np.sqrt([squares[:, i * d : (i + 1) * d].sum(axis=1) for i in range(n_lines)])


def _edges(features: Array, bounds: Bounds) -> tuple[Array, Array]:
    low, high = np.quantile(features, [bounds.edge, 1 - bounds.edge], axis=0)
    return low, high


def _excess(features: Array, low: Array, high: Array, bounds: Bounds) -> tuple[Array, Array]:
    """How far features lie above and below their envelope, in widths of it."""
    width = np.maximum(high - low, bounds.narrowest)
    return np.maximum(features - high, 0) / width, np.maximum(low - features, 0) / width
