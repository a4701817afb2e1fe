"""The page's way of unpacking a tile, in slow and obvious Python."""

from __future__ import annotations

import base64
import struct
import zlib

from vace_ad.report.curves import BLOCK


def decode_tile(text: bytes, samples: int, planes: int, bits: int) -> list[list[float]]:
    raw = zlib.decompress(base64.b64decode(text))
    blocks = -(-samples // BLOCK)
    origin = struct.unpack(f"<{blocks}d", raw[: 8 * blocks])
    step = struct.unpack(f"<{blocks}d", raw[8 * blocks : 16 * blocks])
    codes = raw[16 * blocks :]
    missing = 2**bits - 1
    out = []
    for plane in range(planes):
        code, values = 0, []
        for i in range(samples):
            at = plane * samples + i
            high = codes[planes * samples + at] << 8 if bits == 16 else 0
            code = (code + codes[at] + high) & missing
            block = i // BLOCK
            values.append(float("nan") if code == missing else origin[block] + code * step[block])
        out.append(values)
    return out
