"""Envelopes of windows that learn new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vace_ad.signals.folds import contiguous_folds
from vace_ad.signals.merge import merged_edges, merged_mean
from vace_ad.signals.rows import grid_to_rows
from vace_ad.signals.windows import (
    MOST_WINDOWS,
    Envelope,
    Windows,
    block_moments,
    both_sides,
    by_line,
    features_of,
)

Array = NDArray[np.float64]


def update_windows(
    windows: Windows, parts: Sequence[Array], accepted: Sequence[Array], weight: float
) -> tuple[Windows, list[Array]]:
    """The windows with new rows, and the evidence (n_lines, n_rows) of each part, held out."""
    done = [update_envelope(each, parts, accepted, weight) for each in windows.envelopes]
    merged = replace(windows, envelopes=tuple(envelope for envelope, _ in done))
    by_part = zip(*(rows for _, rows in done), strict=True)
    return merged, [merged.weighted(list(rows)) for rows in by_part]


def update_envelope(
    envelope: Envelope, parts: Sequence[Array], accepted: Sequence[Array], weight: float
) -> tuple[Envelope, list[Array]]:
    """An envelope with new rows; those of each part are held out in turn, as in a fit."""
    window, step = envelope.window, envelope.step
    n_windows = sum((len(part) - window) // step + 1 for part in parts)
    thin = max(1, -(-n_windows // MOST_WINDOWS))
    each = [_features(envelope, part)[::thin] for part in parts]
    features = np.concatenate(each)
    first = np.cumsum([0] + [len(part) for part in parts])
    starts = np.concatenate(
        [np.arange(len(f)) * step * thin + a for f, a in zip(each, first, strict=False)]
    )
    named = [_features(envelope, part) for part in accepted]
    n_lines = len(envelope.windowed.weights)
    sums = np.empty((n_lines, len(features)))
    for fit, held in contiguous_folds(starts, window):
        excess = _learned(envelope, features[fit], named, weight).excess(features[held])
        sums[:, held] = by_line(both_sides(excess), n_lines)
    borders = np.cumsum([len(f) for f in each])[:-1]
    rows = [
        np.log1p(np.stack([grid_to_rows(x, step * thin, len(part), window) for x in lines]))
        for part, lines in zip(parts, np.split(sums, borders, axis=1), strict=True)
    ]
    new = np.concatenate(rows, axis=1).mean(axis=1)
    usual = merged_mean(envelope.usual, new, weight)
    merged = replace(_learned(envelope, features, named, weight), usual=usual)
    return merged, [evidence / (1 + usual[:, None]) for evidence in rows]


def _features(envelope: Envelope, part: Array) -> Array:
    return features_of(
        block_moments(part, envelope.step),
        envelope.blocks,
        envelope.step,
        envelope.windowed,
        envelope.bounds,
    )


def _learned(
    envelope: Envelope, features: Array, named: Sequence[Array], weight: float
) -> Envelope:
    """The envelope with new windows by their number, and accepted ones wholly inside."""
    edge = envelope.bounds.edge
    low, high = merged_edges(envelope.low, envelope.high, features, weight, edge)
    for each in named:
        low, high = np.minimum(low, each.min(axis=0)), np.maximum(high, each.max(axis=0))
    return replace(envelope, low=low, high=high)
