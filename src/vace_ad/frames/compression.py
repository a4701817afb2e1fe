"""gzip and zstd: unpacked within a limit, so that a small file cannot fill the machine."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from vace_ad.errors import TableReadError

if TYPE_CHECKING:
    from vace_ad.frames.read import RawFile

_BLOCK = 1 << 20


def gunzip(file: RawFile) -> RawFile:
    """Unpack gzip, also of several members, within the limit."""
    parts, total = [], 0
    try:
        with file.open() as packed, gzip.open(packed) as unpacked:
            while part := unpacked.read(_BLOCK):
                total += len(part)
                if total > file.most:
                    raise file.too_large()
                parts.append(part)
    except (EOFError, OSError, zlib.error) as error:
        raise TableReadError(
            f"{file.name} begins like gzip but cannot be unpacked; it may be cut short, write it "
            "again"
        ) from error
    return replace(file, data=b"".join(parts))


_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK = 128 * 1024  # bytes that a block gives at most
_RAW, _REPEATED = 0, 1  # kinds of blocks; a repeated one is stored as one byte


def zstd_bytes(file: BinaryIO) -> int:
    """Largest size of an unpacked zstd file in bytes; of a damaged one, up to the damage.

    Computed from its headers alone. A file is a row of frames, a frame a row of blocks (RFC
    8878). A raw or repeated block says how many bytes it gives, a compressed one gives at most
    128 kB; a frame may also say its whole size, and an unpacker holds it to that.
    """
    total = 0
    while len(magic := file.read(4)) == 4:
        if magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:  # a frame to be skipped
            file.seek(int.from_bytes(file.read(4), "little"), io.SEEK_CUR)
        elif magic == _ZSTD:
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
    blocks = _block_bytes(file)
    file.seek(4 * (flags >> 2 & 1), io.SEEK_CUR)  # a checksum
    return said if width else blocks


def _block_bytes(file: BinaryIO) -> int:
    total, last = 0, False
    while not last and len(head := file.read(3)) == 3:
        number = int.from_bytes(head, "little")
        last, kind, size = bool(number & 1), number >> 1 & 3, number >> 3
        total += size if kind in (_RAW, _REPEATED) else _ZSTD_BLOCK
        file.seek(1 if kind == _REPEATED else size, io.SEEK_CUR)
    return total
