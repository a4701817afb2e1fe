"""How large a zstd file can become, from its headers alone, before anything is unpacked.

A file is a row of frames, a frame a row of blocks (RFC 8878). A raw or repeated block says how many
bytes it gives, a compressed one gives at most 128 kB; a frame may also say its whole size, and an
unpacker holds it to that. So the bound holds for files written as a stream and for several frames.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOCK = 128 * 1024  # bytes that a block gives at most
_RAW, _REPEATED = 0, 1  # kinds of blocks; a repeated one is stored as one byte


def most_bytes(data: bytes | Path) -> int:
    """Bytes that a zstd file unpacks to at most; what is damaged counts up to the damage."""
    if isinstance(data, bytes):
        return _frames(io.BytesIO(data))
    with data.open("rb") as file:
        return _frames(file)


def _frames(file: BinaryIO) -> int:
    total = 0
    while len(magic := file.read(4)) == 4:
        if magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:  # a frame to be skipped
            file.seek(int.from_bytes(file.read(4), "little"), io.SEEK_CUR)
        elif magic == _MAGIC:
            total += _frame(file)
        else:
            break  # no zstd: the unpacker refuses it
    return total


def _frame(file: BinaryIO) -> int:
    """The bytes that one frame gives at most; leaves the file at its end."""
    flags = int.from_bytes(file.read(1), "little")
    single, kind, dictionary = flags >> 5 & 1, flags >> 6, (0, 1, 2, 4)[flags & 3]
    width = (1 if single else 0, 2, 4, 8)[kind]  # bytes of the size
    file.seek((not single) + dictionary, io.SEEK_CUR)
    said = int.from_bytes(file.read(width), "little") + 256 * (width == 2)
    blocks = _blocks(file)
    file.seek(4 * (flags >> 2 & 1), io.SEEK_CUR)  # a checksum
    return said if width else blocks


def _blocks(file: BinaryIO) -> int:
    total, last = 0, False
    while not last and len(head := file.read(3)) == 3:
        number = int.from_bytes(head, "little")
        last, kind, size = bool(number & 1), number >> 1 & 3, number >> 3
        total += size if kind in (_RAW, _REPEATED) else _BLOCK
        file.seek(1 if kind == _REPEATED else size, io.SEEK_CUR)
    return total
