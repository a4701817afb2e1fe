"""Pieces of a series, small enough to embed by the thousand and to unpack one at a time.

A tile is up to 4,096 samples of one level. Every block of 1,024 samples has its own origin and
step, so a spike somewhere does not cost the quiet stretches their resolution. Samples become
whole numbers of 8 or 16 bits, then differences (smooth curves have small ones), then deflate,
then base64.

    layout: float64 origin[blocks], float64 step[blocks], codes
    codes:  uint8 or uint16 differences mod 2^bits, planes of a level one after the other;
            16 bits as all low bytes, then all high bytes
"""

from __future__ import annotations

import base64
import zlib

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
