"""How large a table may become in memory, so that a small file cannot fill the machine."""

from __future__ import annotations

import gzip
import io
import os
import re
import time
import zlib
from pathlib import Path
from typing import BinaryIO

from vace_ad.errors import ConfigError, TableReadError
from vace_ad.settings import option

DEFAULT = "4GB"
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
NO_WRITER_SECONDS = 10.0  # that a pipe may stay without a writer
_BLOCK = 1 << 20
_COLUMN = 100_000  # bytes that a column counts at least


def parse_size(text: str | int) -> int:
    """Bytes of a size such as 500MB or 8GB."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].upper() not in _UNITS or float(match[1]) == 0:
        raise ConfigError(
            f"{text!r} is not a size; write a number and a unit, such as 500MB or 8GB"
        )
    return round(float(match[1]) * _UNITS[match[2].upper()])


def size_words(size: float) -> str:
    """A number of bytes for display."""
    for unit in ("TB", "GB", "MB", "kB"):
        bytes_of = _UNITS[unit.upper()]
        if size >= bytes_of:
            return f"{size / bytes_of:.3g} {unit}"
    return f"{size:.0f} bytes"


def check_cells(name: str, rows: int, columns: int, most: int, *, cell: int = 8) -> None:
    """Refuse a table that would need more than `most` bytes as numbers, or has too many columns.

    `cell` is what one of them takes. A column counts as 100 kB at least: that is about what it
    costs in time and memory on the way.
    """
    size = max(cell * rows, _COLUMN) * columns
    if size > most:
        raise TableReadError(
            f"{name} has {rows:,} rows × {columns:,} columns, {size_words(size)} in memory; the "
            f"limit is {size_words(most)}: {option('max_size', _next(size))} lifts it; if it has "
            f"fewer columns than this, {option('delimiter')} says how they are divided"
        )


def too_large(name: str, most: int) -> TableReadError:
    """The error for something whose end was not reached within the limit."""
    return TableReadError(
        f"{name} unpacks to more than {size_words(most)}; if that is meant, "
        f"{option('max_size', _next(4 * most))} lifts the limit"
    )


def _next(size: int) -> str:
    return f"{-(-size // 10**9)}GB"


def gunzip(name: str, data: bytes | Path, most: int) -> bytes:
    """Unpack gzip, also of several members, up to `most` bytes."""
    parts, total = [], 0
    try:
        with gzip.open(io.BytesIO(data) if isinstance(data, bytes) else data) as file:
            while part := file.read(_BLOCK):
                total += len(part)
                if total > most:
                    raise too_large(name, most)
                parts.append(part)
    except (EOFError, OSError, zlib.error) as error:
        raise TableReadError(
            f"{name} begins like gzip but cannot be unpacked; it may be cut short, write it again"
        ) from error
    return b"".join(parts)


def read_pipe(path: Path, most: int) -> bytes:
    """Everything of a named pipe or a device, up to `most` bytes; refuses a pipe without a writer.

    A writer that is there may take its time.
    """
    name = str(path)
    with open(path, "rb", buffering=0, opener=_without_waiting) as file:
        until = time.monotonic() + NO_WRITER_SECONDS
        first = file.read(1)  # None: a writer is connected; empty: none is
        while first == b"" and path.is_fifo():
            if time.monotonic() > until:
                raise TableReadError(
                    f"{name} is a pipe without a writer (for {NO_WRITER_SECONDS:g} s); start "
                    "its writer first, or give a file"
                )
            time.sleep(0.02)
            first = file.read(1)
        os.set_blocking(file.fileno(), True)
        with io.BufferedReader(file) as rest:
            data = (first or b"") + read_all(name, rest, most)
    if not data:
        raise TableReadError(f"{name} is empty; give a table with at least one row")
    return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_all(name: str, file: BinaryIO, most: int) -> bytes:
    """Everything of a pipe, up to `most` bytes."""
    data = file.read(most + 1)
    if len(data) > most:
        raise too_large(name, most)
    return data


_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK = 128 * 1024  # bytes that a block gives at most
_RAW, _REPEATED = 0, 1  # kinds of blocks; a repeated one is stored as one byte


def zstd_bytes(data: bytes | Path) -> int:
    """Largest size of an unpacked zstd file in bytes; of a damaged one, up to the damage.

    Computed from its headers alone. A file is a row of frames, a frame a row of blocks (RFC
    8878). A raw or repeated block says how many bytes it gives, a compressed one gives at most
    128 kB; a frame may also say its whole size, and an unpacker holds it to that.
    """
    if isinstance(data, bytes):
        return _frames(io.BytesIO(data))
    with data.open("rb") as file:
        return _frames(file)


def _frames(file: BinaryIO) -> int:
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
