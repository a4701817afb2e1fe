"""Random damage, from bits to the structure of JSON and text. All draws come from one generator."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

INTEGERS = (
    0,
    1,
    -1,
    2,
    7,
    127,
    128,
    255,
    256,
    65_535,
    2**31 - 1,
    2**31,
    2**32,
    2**53,
    2**63,
    2**64,
)
NUMBERS = (*INTEGERS, 0.5, -0.5, 1e-300, 5e-324, 1e16, 1e150, 1e300, 1e308, -1e308)
VALUES: tuple[Any, ...] = (
    None, True, False, "", " ", "x", "nan", "0", "-1", "\x00", "\ud800", "é\u202e", "a" * 3000,
    [], {}, [[]], [None], {"": None}, *NUMBERS,
)  # fmt: skip
WORDS = (
    b"", b" ", b"\n", b"\r\n", b"\t", b",", b";", b'"', b"'", b"\\", b"#", b"=", b"{", b"}", b"[",
    b"]", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xff", b"nan", b"NaN", b"inf", b"-inf", b"null",
    b"true", b"1e400", b"-0", b"1_0", b"0x10", b"1,5", b"1.234.567,8", b"9" * 400, b"2026-02-30",
    b"24:00:00", b"1970-01-01T00:00:00Z", b"9999-12-31 23:59:59", b"0001-01-01", b"=1+1",
    b"\xe2\x80\xae",
)  # fmt: skip


def damaged(data: bytes, rng: Random, times: int | None = None) -> bytes:
    """Bytes with some of them changed, moved, lost or doubled."""
    for _ in range(times or rng.choice((1, 1, 1, 2, 3, 8))):
        data = rng.choice(BYTES)(data, rng)
    return data[: 4 * 2**20]


def _place(data: bytes, rng: Random) -> int:
    """Ends and beginnings matter more than the middle of a file."""
    near = min(len(data), 64)
    return rng.choice(
        (rng.randint(0, len(data)), rng.randint(0, near), len(data) - rng.randint(0, near))
    )


def _flip(data: bytes, rng: Random) -> bytes:
    if not data:
        return data
    out, i = bytearray(data), min(_place(data, rng), len(data) - 1)
    out[i] ^= 1 << rng.randrange(8)
    return bytes(out)


def _set(data: bytes, rng: Random) -> bytes:
    i = _place(data, rng)
    return data[:i] + rng.randbytes(1) + data[i + 1 :]


def _number(data: bytes, rng: Random) -> bytes:
    i, value = _place(data, rng), rng.choice(INTEGERS) & (2**64 - 1)
    width = rng.choice((1, 2, 4, 8))
    word = struct.pack(rng.choice("<>") + "Q", value)
    return data[:i] + (word[:width] if rng.random() < 0.5 else word[-width:]) + data[i + width :]


def _cut(data: bytes, rng: Random) -> bytes:
    return data[: _place(data, rng)]


def _lose(data: bytes, rng: Random) -> bytes:
    i = _place(data, rng)
    return data[:i] + data[i + rng.choice((1, 2, 8, 100, 1000)) :]


def _double(data: bytes, rng: Random) -> bytes:
    i, n = _place(data, rng), rng.choice((1, 8, 100, 1000))
    j = _place(data, rng)
    return data[:j] + data[i : i + n] * rng.choice((1, 2, 30)) + data[j:]


def _word(data: bytes, rng: Random) -> bytes:
    i = _place(data, rng)
    return data[:i] + rng.choice(WORDS) + data[i + rng.choice((0, 0, 1, 5)) :]


BYTES: Sequence[Callable[[bytes, Random], bytes]] = (
    _flip, _set, _number, _cut, _lose, _double, _word,
)  # fmt: skip


# ---------------------------------------------------------------------------- lines


def cells_damaged(data: bytes, rng: Random, signs: bytes = b",;\t| =") -> bytes:
    """A text whose lines and cells are changed, moved, lost or doubled."""
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 5))):
        i = rng.randrange(len(lines))
        what = rng.randrange(7)
        sign = bytes([rng.choice(signs)])
        if what == 0:
            parts = lines[i].split(sign)
            parts[rng.randrange(len(parts))] = rng.choice(WORDS)
            lines[i] = sign.join(parts)
        elif what == 1:
            lines.insert(i, rng.choice(lines))
        elif what == 2 and len(lines) > 1:
            del lines[i]
        elif what == 3:
            j = rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        elif what == 4:
            lines[i] = lines[i].replace(sign, bytes([rng.choice(signs)]))
        elif what == 5:
            lines[i] = lines[i] * rng.choice((2, 50))
        else:
            parts = lines[i].split(sign)
            rng.shuffle(parts)
            lines[i] = sign.join(parts[: rng.randint(0, len(parts))])
    return b"\n".join(lines)


# ----------------------------------------------------------------------------- JSON


def json_damaged(value: Any, rng: Random) -> Any:
    """A JSON value with one place changed: another value, type, key, order or depth."""
    places = list(_places(value))
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    what = rng.randrange(8)
    if what <= 2:
        holder[key] = rng.choice(VALUES)
    elif what == 3:
        del holder[key]
    elif what == 4 and isinstance(holder[key], int | float):
        holder[key] = rng.choice((-holder[key], holder[key] * 1e6, str(holder[key]), [holder[key]]))
    elif what == 5:
        other, name = rng.choice(places)
        holder[key] = _copied(other[name])
    elif what == 6 and isinstance(holder, dict):
        holder[rng.choice(("", "x", f"{key}2", *holder))] = holder.pop(key)
    else:
        holder[key] = [holder[key]] * rng.choice((1, 2, 300))
    return value


def _places(value: Any) -> Any:
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for i, one in enumerate(value[:50]):
            yield value, i
            yield from _places(one)


def _copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def json_text_damaged(data: bytes, rng: Random) -> bytes:
    """The same on a text; where it is no JSON any more, its bytes."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return damaged(data, rng)
    for _ in range(rng.choice((1, 1, 2, 4))):
        value = json_damaged(value, rng)
    return json.dumps(value).encode()
