"""Curves: packed tiles of a pyramid for the scripts, small pictures for paper and notebooks.

Pyramid: coarser and coarser views of one series, the lowest and highest value of every 16^k rows.
A screen has a thousand or so columns of pixels. Whatever the zoom, the page draws from the
coarsest level that still has at least one bin a column, so the work of a frame does not grow
with the series, and no spike is ever lost, as it would be by taking every m-th row.

Tile: up to 4,096 samples of one level, small enough to embed by the thousand and to unpack one at
a time. Every block of 1,024 samples has its own origin and step, so a spike somewhere does not
cost the quiet stretches their resolution. Samples become whole numbers of 8 or 16 bits, then
differences (smooth curves have small ones), then deflate, then base64.

    layout: float64 origin[blocks], float64 step[blocks], codes
    codes:  uint8 or uint16 differences mod 2^bits, planes of a level one after the other;
            16 bits as all low bytes, then all high bytes

Choice of tiles, where not all of them fit into the file: coarse levels first, for every series;
then finer ones, in the order in which a reader will look: around the events before elsewhere,
scores before channels, blamed channels before others.

Picture: a suspect of an event, its values, what was expected, the evidence below.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vace_ad.frames.segments import run_edges
from vace_ad.report.data import Curve

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


Array = NDArray[np.float64]

WIDTH, HEIGHT, STRIP = 640, 110, 34  # of the picture, and of the evidence in it
POINTS = 160  # columns at most
EVENT, EXPECTED = "#d55e00", "#00805d"


def suspect_svg(
    values: NDArray[np.floating], curve: Curve, first: int, span: tuple[int, int], name: str
) -> str:
    """Draw rows of a channel from row `first` on, with what was expected; `span` is the event.

    `curve` has the same rows as `values` (n,).
    """
    _, low, high = envelope(values, POINTS)
    _, lower, _ = envelope(curve.lower, POINTS)
    _, _, upper = envelope(curve.upper, POINTS)
    _, _, nats = envelope(curve.nats, POINTS)
    n, scale = len(low), WIDTH / max(len(values), 1)
    x = (np.arange(n) + 0.5) * WIDTH / n
    known = np.concatenate([low, high, lower, upper])
    known = known[np.isfinite(known)]
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    top = HEIGHT - STRIP - 6

    def y(line: Array) -> Array:
        return np.asarray(3 + (top - 6) * (most - line) / ((most - least) or 1.0))

    height = max(float(np.nanmax(nats, initial=0.0)), 1.0)
    start, end = ((row - first) * scale for row in span)
    outside = (high > upper) | (low < lower)
    outside &= (x > start - WIDTH / n) & (x < end + WIDTH / n)
    left = np.where(outside, 0.0, np.nan)
    gone = svg_bars(x, y(high) + left, y(low)) + svg_line(x, y((low + high) / 2) + left)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">'
        f'<rect x="{start:.1f}" y="0" width="{max(end - start, 2):.1f}" height="{HEIGHT}" '
        f'fill="{EVENT}" fill-opacity="0.13"/>'
        f'<path d="{_area(x, y(lower), y(upper))}" fill="{EXPECTED}" fill-opacity="0.2"/>'
        f'<path d="{svg_line(x, y((lower + upper) / 2))}" stroke="{EXPECTED}" fill="none"/>'
        f'<path d="{svg_bars(x, y(high), y(low))}{svg_line(x, y((low + high) / 2))}" '
        'stroke="currentColor" stroke-width="1.3" fill="none"/>'
        f'<path d="{gone}" stroke="{EVENT}" stroke-width="2" fill="none"/>'
        f'<path d="{svg_bars(x, HEIGHT - STRIP * nats / height, np.full(n, float(HEIGHT)))}" '
        f'stroke="{EVENT}" stroke-width="{max(WIDTH / n - 0.5, 1):.1f}" fill="none"/>'
        f'<text x="2" y="{HEIGHT - STRIP + 8}" font-size="10" fill="currentColor">'
        f"evidence, up to {height:.0f} nats</text></svg>"
    )


def envelope(scores: NDArray[np.floating], most: int) -> tuple[NDArray[np.intp], Array, Array]:
    """Return at most so many rows, and the lowest and highest score from each to the next."""
    wide = np.where(np.isfinite(scores), scores, np.nan).astype(np.float64)
    size = max(1, -(-len(wide) // most))
    bins = binned(wide, size)  # (k, size)
    low, high = np.fmin.reduce(bins, axis=1), np.fmax.reduce(bins, axis=1)
    return np.arange(len(bins)) * size, low, high


def _runs(*lines: Array) -> Iterable[NDArray[np.intp]]:
    """Places of columns that follow each other and are known in all lines."""
    known = np.asarray(np.isfinite(lines).all(axis=0))
    return (np.arange(a, b) for a, b in run_edges(known).tolist())


def svg_line(x: Array, y: Array) -> str:
    """Return the path of a line, broken where a value is missing."""
    return "".join(
        "M" + "L".join(f"{x[i]:.1f} {y[i]:.1f}" for i in run.tolist()) for run in _runs(y)
    )


def _area(x: Array, low: Array, high: Array) -> str:
    found = []
    for run in _runs(low, high):
        there = [f"{x[i]:.1f} {high[i]:.1f}" for i in run.tolist()]
        back = [f"{x[i]:.1f} {low[i]:.1f}" for i in run[::-1].tolist()]
        found.append("M" + "L".join(there + back) + "Z")
    return "".join(found)


def svg_bars(x: Array, top: Array, bottom: Array, least: float = 0.5) -> str:
    """Return the path of vertical bars, none shorter than `least`."""
    return "".join(
        f"M{x[i]:.1f} {top[i]:.1f}V{max(bottom[i], top[i] + least):.1f}"
        for i in np.flatnonzero(np.isfinite(top) & np.isfinite(bottom)).tolist()
    )
