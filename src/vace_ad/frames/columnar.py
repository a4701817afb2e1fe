"""Parquet and Arrow files; a damaged one raises one clear error.

How large an Arrow file becomes is told from its own description, before anything is unpacked. A
file is a row of messages: a description (a flatbuffer) and a body of buffers. A packed buffer
begins with the number of bytes that it unpacks to, and an unpacker reserves that many.
"""

from __future__ import annotations

import io
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import polars.selectors as cs

from vace_ad.errors import TableReadError
from vace_ad.frames.text import first_line
from vace_ad.wording import listed

if TYPE_CHECKING:
    from vace_ad.frames.read import RawFile

_WORDS = cs.string() | cs.categorical() | cs.enum()
_PROBES = 32  # rows of a Parquet file whose words are measured before all are unpacked


def read_typed(file: RawFile, kind: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read a Parquet or Arrow file within the limit, and say what is left out.

    Columns of lists, structures and bytes are never unpacked: they cannot be channels, and a cell
    of them may be of any size.
    """
    try:
        if kind == "Parquet":
            frame, nested = _parquet(file)
        else:
            frame, nested = _arrow(file, kind == "Arrow stream")
        if _text_bytes(frame) > file.most:
            raise file.too_large()
    except TableReadError:
        raise
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        ValueError,
    ) as error:
        # A PanicException is not an Exception, so it is named here.
        raise TableReadError(
            f"{file.name} begins like {kind} but cannot be read ({first_line(error)}); "
            "it may be cut short or damaged, write it again"
        ) from error
    note = f"columns of lists, structures or bytes are not read: {listed([*map(repr, nested)])}"
    return frame, (note,) if nested else ()


def _parquet(file: RawFile) -> tuple[pl.DataFrame, list[str]]:
    lazy = pl.scan_parquet(_source(file), hive_partitioning=False)
    flat, nested = _flat(lazy.collect_schema())
    rows = lazy.select(pl.len()).collect().item()
    file.check_cells(rows, len(flat))
    words = lazy.select(cs.by_name(flat) & _WORDS)
    if words.collect_schema():  # a file repeats a long word at no cost: look before all is unpacked
        starts = [i * rows // _PROBES for i in range(min(_PROBES, rows))]
        probe = [_text_bytes(words.slice(start, 1).collect()) for start in starts]
        mean = sum(probe) / max(len(probe), 1)
        if max(max(probe, default=0) / _PROBES, mean) * rows > file.most:
            raise file.too_large()
    return lazy.select(flat).collect(), nested


def _source(file: RawFile) -> io.BytesIO | Path:
    """What polars reads from."""
    return io.BytesIO(file.data) if isinstance(file.data, bytes) else file.data


def _arrow(file: RawFile, stream: bool) -> tuple[pl.DataFrame, list[str]]:
    source = _source(file)
    rows, size = arrow_size(file.data, stream=stream)
    schema = pl.read_ipc_stream(source, n_rows=0).schema if stream else pl.read_ipc_schema(source)
    flat, nested = _flat(pl.Schema(schema))
    file.check_cells(rows, len(flat))
    if size > file.most:
        raise file.too_large()
    if isinstance(source, io.BytesIO):
        source.seek(0)
    read = pl.read_ipc_stream if stream else pl.read_ipc
    return read(source, columns=flat), nested


def _flat(schema: pl.Schema) -> tuple[list[str], list[str]]:
    """Columns of single values, and the others."""
    nested = [n for n, kind in schema.items() if kind.is_nested() or kind in (pl.Binary, pl.Object)]
    return [n for n in schema.names() if n not in set(nested)], nested


def _text_bytes(frame: pl.DataFrame) -> int:
    """Bytes of all words of a table."""
    words = frame.select(_WORDS.cast(pl.String).str.len_bytes().cast(pl.UInt64).sum())
    return sum(words.row(0)) if words.width else 0


_MAGIC = b"ARROW1"
_CONTINUED = 0xFFFFFFFF  # before the length of a description
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_NOT_PACKED = -1


class Size(NamedTuple):
    """Rows of all batches, and bytes of all buffers once unpacked."""

    rows: int
    bytes: int


def arrow_size(data: bytes | Path, *, stream: bool) -> Size:
    """The size of an Arrow file or stream; ValueError where its description does not hold."""
    if isinstance(data, bytes):
        return _size(data, stream)
    with data.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        return _size(view, stream)


def _size(data: bytes | mmap.mmap, stream: bool) -> Size:
    rows = total = 0
    try:
        for start in _stream(data) if stream else _blocks(data):
            own_rows, own_bytes = _message(data, start)
            rows, total = rows + own_rows, total + own_bytes
    except struct.error as error:  # a place outside the file
        raise ValueError("its description does not hold") from error
    return Size(rows, total)


def _number(data: bytes | mmap.mmap, at: int, kind: str) -> int:
    if at < 0:
        raise struct.error
    return int(struct.unpack_from(f"<{kind}", data, at)[0])


def _field(data: bytes | mmap.mmap, table: int, i: int) -> int | None:
    """Where field `i` of a flatbuffer's table lies; None where it has its default."""
    layout = table - _number(data, table, "i")
    if 4 + 2 * i >= _number(data, layout, "H"):
        return None
    offset = _number(data, layout + 4 + 2 * i, "H")
    return table + offset if offset else None


def _target(data: bytes | mmap.mmap, at: int | None) -> int | None:
    return None if at is None else at + _number(data, at, "I")


def _description(data: bytes | mmap.mmap, at: int) -> tuple[int, int]:
    """Where the description of the message at this place begins, and its length."""
    if _number(data, at, "I") == _CONTINUED:
        at += 4
    return at + 4, _number(data, at, "i")


def _stream(data: bytes | mmap.mmap) -> Iterator[int]:
    """Where each message of a stream begins."""
    at = 0
    while at + 8 <= len(data):
        start, length = _description(data, at)
        if length <= 0:
            return
        yield at
        body = _field(data, start + _number(data, start, "I"), 3)
        at = start + length + (0 if body is None else max(0, _number(data, body, "q")))


def _blocks(data: bytes | mmap.mmap) -> Iterator[int]:
    """Where the footer of a file says that dictionaries and batches begin."""
    end = len(data) - len(_MAGIC)
    if bytes(data[end:]) != _MAGIC:
        raise ValueError("it is cut short")
    footer = end - 4 - _number(data, end - 4, "i")
    table = footer + _number(data, footer, "I")
    for i in (2, 3):  # dictionaries, batches
        blocks = _target(data, _field(data, table, i))
        for k in range(_number(data, blocks, "I") if blocks is not None else 0):
            assert blocks is not None
            yield _number(data, blocks + 4 + 24 * k, "q")


def _message(data: bytes | mmap.mmap, at: int) -> Size:
    start, length = _description(data, at)
    table = start + _number(data, start, "I")
    kind_at, header = _field(data, table, 1), _target(data, _field(data, table, 2))
    kind = _number(data, kind_at, "B") if kind_at is not None else 0
    if kind == _DICTIONARY and header is not None:
        header = _target(data, _field(data, header, 1))
    if kind not in (_DICTIONARY, _BATCH) or header is None:
        return Size(0, 0)
    rows_at, buffers = _field(data, header, 0), _target(data, _field(data, header, 2))
    packed, body, total = _field(data, header, 3) is not None, start + length, 0
    for k in range(_number(data, buffers, "I") if buffers is not None else 0):
        assert buffers is not None
        offset, size = (_number(data, buffers + 4 + 16 * k + 8 * j, "q") for j in (0, 1))
        if packed and size >= 8:
            unpacked = _number(data, body + offset, "q")
            size = size - 8 if unpacked == _NOT_PACKED else unpacked
        total += max(0, size)
    rows = _number(data, rows_at, "q") if rows_at is not None else 0
    return Size(max(0, rows) if kind == _BATCH else 0, total)
