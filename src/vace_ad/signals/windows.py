"""Windows of several lengths: each channel's mean and log-deviation against its training envelope.

A window of w rows consists of `STEPS` blocks of w / STEPS rows, and one starts at every block. The
mean and the sum of squares of a block are worked out once and put together for every window that
holds it. A level that stays outside its envelope becomes the new normal at a stated rate, and a
signal that speaks all the time loses weight, both from the past alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vace_ad.config import VACEConfig
from vace_ad.signals.baseline_model import contiguous_folds, quantile
from vace_ad.signals.incremental import merged_edges, merged_mean
from vace_ad.signals.protocol import Arrays, Layout, LearnedAlone, prefixed, under
from vace_ad.signals.row_buffer import grid_to_rows, ordered_sum

Array = NDArray[np.float64]

STEPS = 8  # windows that cover a row
TOGETHER = 512  # windows that are summed together: few enough to stay in cache
MOST_WINDOWS = 20_000  # that an envelope is learned from
_ENVELOPE = ("low", "high", "mean_evidence")


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
class Envelope(LearnedAlone):
    """The range of window features in training, for one window length."""

    windowed: Windowed
    blocks: int  # a window consists of
    step: int  # rows a block, and rows from one window to the next
    low: Array  # (n_features,): for each line in turn, that of each channel
    high: Array  # (n_features,)
    mean_evidence: Array  # (n_lines,), mean evidence of held-out training rows
    bounds: Bounds

    @property
    def window(self) -> int:
        """Rows that a window covers."""
        return self.blocks * self.step

    @classmethod
    def fit(
        cls, parts: Sequence[Array], windowed: Windowed, length: int, bounds: Bounds
    ) -> tuple[Envelope, list[Envelope]]:
        """The envelope of scaled training rows, and those without each block of them."""
        none = np.empty(0)
        blank = cls(windowed, *_sizes(windowed, length), none, none, none, bounds)
        envelope, without, mean_evidence = blank._learned(parts, blank._around)
        return replace(envelope, mean_evidence=mean_evidence), [
            replace(each, mean_evidence=mean_evidence) for each in without
        ]

    def updated(
        self, parts: Sequence[Array], accepted: Sequence[Array], weight: float
    ) -> tuple[Envelope, list[Envelope]]:
        """The envelope with new rows, and those without each block of them.

        New windows count by their number, accepted ones lie wholly inside.
        """
        named = [self.features(part) for part in accepted]

        def learn(features: Array) -> Envelope:
            low, high = merged_edges(self.low, self.high, features, weight, self.bounds.edge)
            for each in named:
                low, high = np.minimum(low, each.min(axis=0)), np.maximum(high, each.max(axis=0))
            return replace(self, low=low, high=high)

        envelope, without, new = self._learned(parts, learn)
        mean_evidence = merged_mean(self.mean_evidence, new, weight)
        return replace(envelope, mean_evidence=mean_evidence), [
            replace(each, mean_evidence=mean_evidence) for each in without
        ]

    def _around(self, features: Array) -> Envelope:
        columns, edge = features.T.copy(), self.bounds.edge
        return replace(self, low=quantile(columns, edge), high=quantile(columns, 1 - edge))

    def _learned(
        self, parts: Sequence[Array], learn: Callable[[Array], Envelope]
    ) -> tuple[Envelope, list[Envelope], Array]:
        """What `learn` makes of the features of rows: of all, and without each block of them.

        Also the mean evidence of rows by envelopes that did not see them, (n_lines,).
        """
        window, step = self.window, self.step
        counts = [(len(part) - window) // step + 1 for part in parts]
        thin = max(1, -(-sum(counts) // MOST_WINDOWS))
        each = [self.features(part, thin) for part in parts]
        features = np.concatenate(each)
        first = np.cumsum([0] + [len(part) for part in parts])
        starts = np.concatenate(
            [np.arange(len(f)) * step * thin + a for f, a in zip(each, first, strict=False)]
        )
        n_lines = len(self.windowed.weights)
        sums, without = np.empty((n_lines, len(features))), []
        for fit, held in contiguous_folds(starts, window):
            without.append(learn(features[fit]))
            sums[:, held] = by_line(both_sides(without[-1].excess(features[held])), n_lines)
        borders = np.cumsum([len(f) for f in each])[:-1]
        rows = [
            np.log1p(np.stack([grid_to_rows(x, step * thin, len(part), window) for x in lines]))
            for part, lines in zip(parts, np.split(sums, borders, axis=1), strict=True)
        ]
        return learn(features), without, np.concatenate(rows, axis=1).mean(axis=1)

    def features(self, rows: Array, thin: int = 1) -> Array:
        """The features (n_windows, n_features) of every window of rows, or of one in `thin`."""
        moments = block_moments(rows, self.step)
        return features_of(moments, self.blocks, self.step, self.windowed, self.bounds, thin)

    @cached_property
    def _widths(self) -> Array:
        """The widths of envelopes, once for either side, (2 n_features,)."""
        return np.tile(np.maximum(self.high - self.low, self.bounds.narrowest), 2)

    def excess(self, features: Array) -> Array:
        """How far features lie above, then below the envelope, in its widths, (n, 2 n_features)."""
        f = features.shape[1]
        found = np.empty((len(features), 2 * f))
        np.subtract(features, self.high, out=found[:, :f])
        np.subtract(self.low, features, out=found[:, f:])
        np.maximum(found, 0, out=found)
        found /= self._widths
        return found


@dataclass(frozen=True)
class Windows(LearnedAlone):
    """Envelopes for several window lengths, whose evidence adds up to a few lines."""

    envelopes: tuple[Envelope, ...]
    half_life: int  # rows
    warm: int  # first rows of a stream, whose windows are its baseline from the start
    bounds: Bounds

    @classmethod
    def fit(
        cls, parts: Sequence[Array], windowed: Sequence[Windowed], config: VACEConfig
    ) -> tuple[Self, list[Self]]:
        """Learn from scaled rows; also the windows that did not see each block of them."""
        bounds = Bounds()
        blank = cls((), config.drift_half_life, config.warm, bounds)
        return blank._with([Envelope.fit(parts, each, config.window, bounds) for each in windowed])

    def updated(
        self, parts: Sequence[Array], accepted: Sequence[Array], weight: float
    ) -> tuple[Self, list[Self]]:
        """The windows with new rows, and those without each block of them."""
        return self._with([each.updated(parts, accepted, weight) for each in self.envelopes])

    def _with(self, learned: Sequence[tuple[Envelope, list[Envelope]]]) -> tuple[Self, list[Self]]:
        whole = replace(self, envelopes=tuple(envelope for envelope, _ in learned))
        each = zip(*(without for _, without in learned), strict=True)
        return whole, [replace(self, envelopes=tuple(envelopes)) for envelopes in each]

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
        return ordered_sum(weights * np.concatenate(found)[places])

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
            sizes = _sizes(windowed, config.window)
            envelopes.append(
                Envelope(windowed, *sizes, own["low"], own["high"], own["mean_evidence"], bounds)
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
    thin: int = 1,
) -> Array:
    """The features (n_windows, n_features) of every window of `blocks` blocks, or one in `thin`."""
    n, d = len(moments) - blocks + 1, moments.shape[1] // 2
    windows = moments[None]  # (n_windows, blocks, 2 n_channels)
    if n > 1:
        windows = sliding_window_view(moments, blocks, axis=0)[::thin].transpose(0, 2, 1)
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
    for at in range(0, len(values), TOGETHER):
        some, own = values[at : at + TOGETHER], total[at : at + TOGETHER]
        for i in range(values.shape[1]):
            if mean is None:
                own += some[:, i]
            else:
                off = some[:, i] - mean[at : at + TOGETHER]
                off *= off
                own += off
    return total


def by_line(values: Array, n_lines: int) -> Array:
    """The Euclidean length over the channels of each line, (n_lines, n_windows).

    One channel far outside counts more than many a little outside, which a sum would drown it in.
    """
    squares = (values * values).reshape(len(values), n_lines, -1)
    return np.asarray(np.sqrt(squares.sum(axis=2)).T)


def both_sides(excess: Array) -> Array:
    """The excess above plus that below, (n, n_features)."""
    f = excess.shape[1] // 2
    return np.asarray(excess[:, :f] + excess[:, f:])
