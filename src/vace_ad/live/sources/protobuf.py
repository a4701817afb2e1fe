"""Protocol Buffers, as far as a message needs them: fields by number, nothing of a schema."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from vace_ad.live.records import BadRecordError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # how a field is written
Field = tuple[int, int, int | bytes]  # number, how it is written, value


def fields(data: bytes) -> Iterator[Field]:
    """The fields of a message in the order in which they stand; a message inside is its bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == VARINT:
            value, at = _varint(data, at)
        elif kind in (FIXED64, FIXED32):
            value, at = _taken(data, at, 8 if kind == FIXED64 else 4)
        elif kind == BYTES:
            length, at = _varint(data, at)
            value, at = _taken(data, at, length)
        else:
            raise BadRecordError(f"field {number} is written in a way ({kind}) that is not in use")
        yield number, kind, value


def decimal(value: int | bytes) -> float:
    """A float or double out of its four or eight bytes."""
    if not isinstance(value, bytes) or len(value) not in (4, 8):
        raise BadRecordError("a decimal number has four or eight bytes")
    (found,) = struct.unpack("<f" if len(value) == 4 else "<d", value)
    return float(found)


def whole(value: int | bytes) -> int:
    """A whole number without sign."""
    if not isinstance(value, int):
        raise BadRecordError("a whole number is expected, bytes came")
    return value


def text(value: int | bytes) -> str:
    """A text in UTF-8."""
    try:
        return value.decode("utf-8") if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError as error:
        raise BadRecordError(f"a text is not UTF-8: {error.reason}") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first; and where the next field begins."""
    found = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return found & (2**64 - 1), at
    raise BadRecordError("the message ends within a number, or a number is too long")


def _taken(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length > len(data) - at:
        raise BadRecordError(f"{length} bytes were announced, {len(data) - at} came")
    return data[at : at + length], at + length
