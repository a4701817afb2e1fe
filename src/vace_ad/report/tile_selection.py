"""Selects the tiles of the report when not all fit into the file.

Coarse levels first, for every series; then finer ones, in the order in which a reader will
look: around the events before elsewhere, scores before channels, blamed channels before others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vace_ad.report.pyramid import FACTOR, coarse_levels, drawable
from vace_ad.report.tiles import TILE, encode_tile

BASE64 = 4 / 3
Span = tuple[int, int]  # rows [start, end)


@dataclass(frozen=True)
class Embedding:
    """The tiles that made it, and in what detail the page can therefore draw."""

    bits: int  # 8 or 16 for a sample
    tiles: list[list[list[bytes]]]  # [series][level][tile], empty where it was left out

    @cached_property
    def finest_complete(self) -> int:
        """Bin size, in rows, of the finest level that every series has from end to end."""
        for level in range(len(self.tiles[0])):
            if all(all(series[level]) for series in self.tiles):
                return int(FACTOR**level)
        raise AssertionError("the coarsest level is always embedded")

    @cached_property
    def share_of_rows(self) -> float:
        """Share of all values that are embedded one by one."""
        kept = [bool(tile) for series in self.tiles for tile in series[0]]
        return float(np.mean(kept))

    def has_rows_of(self, spans: Sequence[Span], series: Sequence[int]) -> bool:
        """Tell whether all rows of these spans are embedded, one by one, for these series."""
        hot = _hot_tiles(spans, len(self.tiles[0][0]), TILE)
        return all(self.tiles[i][0][t] for i in series for t in np.flatnonzero(hot))


def embed(columns: Sequence[NDArray[np.floating]], spans: Sequence[Span], limit: int) -> Embedding:
    """Encode columns (n,), the ones to look at first coming first, into at most `limit` bytes.

    The coarsest level is embedded whatever the limit, so that the page always shows something.
    """
    n_rows = len(columns[0])
    bits = 16 if len(columns) * n_rows * 2 * BASE64 * (1 + 2 / (FACTOR - 1)) <= limit else 8
    coarse = [coarse_levels(column) for column in columns]
    top = len(coarse[0])  # the coarsest level
    counts = [-(-n_rows // (TILE * FACTOR**level)) for level in range(top + 1)]
    tiles = [[[b""] * count for count in counts] for _ in columns]

    used = 0
    for level, _, i, t in _reading_order(len(columns), counts, spans):
        part = slice(t * TILE, (t + 1) * TILE)
        samples = coarse[i][level - 1][:, part] if level else drawable(columns[i][part])[None]
        tile = encode_tile(samples, bits)
        used += len(tile)
        if used > limit and level < top:
            break
        tiles[i][level][t] = tile
    return Embedding(bits, tiles)


def _reading_order(
    n_series: int, counts: Sequence[int], spans: Sequence[Span]
) -> list[tuple[int, bool, int, int]]:
    """Return (level, away from events, series, tile) of all tiles, the first to keep first."""
    jobs = []
    for level, count in enumerate(counts):
        hot = _hot_tiles(spans, count, TILE * FACTOR**level)
        jobs += [(level, not hot[t], i, t) for i in range(n_series) for t in range(count)]
    return sorted(jobs, key=lambda job: (-job[0], *job[1:]))


def _hot_tiles(spans: Sequence[Span], count: int, rows_each: int) -> NDArray[np.bool_]:
    hot = np.zeros(count, dtype=bool)
    for start, end in spans:
        hot[start // rows_each : -(-end // rows_each)] = True
    return hot
