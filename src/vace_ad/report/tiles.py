"""Curves as packed tiles of a pyramid, and which of them a file of limited size holds.

Coarser and coarser views of one series: the lowest and highest value of every 16^k rows.

A screen has a thousand or so columns of pixels. Whatever the zoom, the page draws from the
coarsest level that still has at least one bin a column, so the work of a frame does not grow
with the series, and no spike is ever lost, as it would be by taking every m-th row.

Pieces of a series, small enough to embed by the thousand and to unpack one at a time.

A tile is up to 4,096 samples of one level. Every block of 1,024 samples has its own origin and
step, so a spike somewhere does not cost the quiet stretches their resolution. Samples become
whole numbers of 8 or 16 bits, then differences (smooth curves have small ones), then deflate,
then base64.

    layout: float64 origin[blocks], float64 step[blocks], codes
    codes:  uint8 or uint16 differences mod 2^bits, planes of a level one after the other;
            16 bits as all low bytes, then all high bytes

Which tiles go into the file, when not all of them fit.

Coarse levels first, for every series; then finer ones, in the order in which a reader will
look: around the events before elsewhere, scores before channels, blamed channels before others.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

TILE = 4096  # samples a tile: the rows around a short event cost few others
BLOCK = 1024  # samples that share an origin and a step
DEFLATE_LEVEL = 9


def encode_tile(samples: NDArray[np.float64], bits: int) -> bytes:
    """Return the base64 of samples (planes, m), m <= TILE, NaN where nothing is known."""
    planes, m = samples.shape
    n_blocks = -(-m // BLOCK)
    padded = np.full((planes, n_blocks * BLOCK), np.nan)
    padded[:, :m] = samples
    blocks = padded.reshape(planes, n_blocks, BLOCK)

    missing = 2**bits - 1  # the code of NaN
    origin = np.fmin.reduce(blocks, axis=(0, 2))  # (n_blocks,), NaN where a block is empty
    top = np.fmax.reduce(blocks, axis=(0, 2))
    origin, top = np.nan_to_num(origin), np.nan_to_num(top)
    step = (top - origin) / (missing - 1)
    scale = np.where(step > 0, step, 1.0)[:, np.newaxis]
    codes = np.rint((blocks - origin[:, np.newaxis]) / scale)
    codes = np.nan_to_num(np.minimum(codes, missing - 1), nan=missing)

    dtype = np.uint8 if bits == 8 else np.uint16
    flat = codes.reshape(planes, -1)[:, :m].astype(dtype)
    steps = np.diff(flat, axis=1, prepend=dtype(0))  # wraps around, as meant
    header = origin.astype("<f8").tobytes() + step.astype("<f8").tobytes()
    return pack(header + _bytes_by_significance(steps))


def pack(payload: bytes) -> bytes:
    """Return bytes as the page wants them: deflated, then base64."""
    return base64.b64encode(zlib.compress(payload, DEFLATE_LEVEL))


def _bytes_by_significance(codes: NDArray[np.uint8] | NDArray[np.uint16]) -> bytes:
    if codes.dtype == np.uint8:
        return codes.tobytes()
    low, high = (codes & 0xFF).astype(np.uint8), (codes >> 8).astype(np.uint8)
    return low.tobytes() + high.tobytes()


FACTOR = 16  # rows of level k + 1 are bins of 16 of level k; costs 2/15 of the series on top
SCREENFUL = 4096  # the coarsest level has at most this many bins
LIMIT = 1e300  # beyond it, differences of two values could overflow


def drawable(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return rows (n,) as numbers that can be drawn: infinite ones become NaN, a hole."""
    wide = np.asarray(rows, dtype=np.float64)
    return np.where(np.isfinite(wide), np.clip(wide, -LIMIT, LIMIT), np.nan)


def coarse_levels(column: NDArray[np.floating]) -> list[NDArray[np.float64]]:
    """Return what lies above the rows (n,) of a series, each level (2, n_bins), finest first.

    The first has the lowest and the highest of every 16 rows, the next of every 256, and so on;
    a bin without a single number is NaN.
    """
    low = high = drawable(column)
    levels = []
    while len(low) > SCREENFUL:
        low = np.fmin.reduce(binned(low, FACTOR), axis=1)
        high = np.fmax.reduce(binned(high, FACTOR), axis=1)
        levels.append(np.stack([low, high]))
    return levels


def binned(values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return values (n,) as bins (k, size), the last one filled up with NaN."""
    padded = np.full(-(-len(values) // size) * size, np.nan)
    padded[: len(values)] = values
    return padded.reshape(-1, size)


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
