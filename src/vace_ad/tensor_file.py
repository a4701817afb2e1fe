"""Safe files: named arrays and a JSON description in one safetensors file, with a checksum.

Reading executes nothing. Before an array is read, the description, the names, the types and the
shapes are checked against what the reader expects; afterwards the values must be finite and the
checksum must fit.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from vace_ad.atomic import whole_file
from vace_ad.errors import VaceError
from vace_ad.version import __version__

Arrays = dict[str, NDArray[Any]]
Layout = dict[str, tuple[str, tuple[int | None, ...]]]  # name → type, shape (None: any length)
_LARGEST_DESCRIPTION = 64 * 2**20  # bytes


@dataclass(frozen=True)
class FileKind:
    """A kind of file."""

    format: str  # its mark
    version: int
    words: str  # for messages, "a model"
    error: type[VaceError]  # raised where a file is damaged, foreign or newer


def pack(
    kind: FileKind, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> bytes:
    """The bytes of a file."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    full = {
        "format_version": kind.version,
        "package_version": __version__,
        "arrays": _forms(contiguous),
        **description,
    }
    text = json.dumps(full, allow_nan=False)
    metadata = {"format": kind.format, "description": text, "sha256": digest(text, contiguous)}
    return bytes(save(contiguous, metadata))


def write(path: str | PathLike[str], data: bytes) -> None:
    """Write a file, whole or not at all; a link is followed."""
    with whole_file(path) as draft, open(draft, "wb") as file:
        file.write(data)
        file.flush()
        if draft.is_file():  # a pipe has nothing to wait for
            os.fsync(file.fileno())


def is_kind(path: str | PathLike[str], kind: FileKind) -> bool:
    """Whether a file has the mark of a kind; it may still be damaged."""
    try:
        with safe_open(path, framework="numpy") as file:
            return (file.metadata() or {}).get("format") == kind.format
    except (SafetensorError, OSError):
        return False


def read(
    path: str | PathLike[str],
    kind: FileKind,
    layout: Callable[[dict[str, Any]], Layout],
) -> tuple[dict[str, Any], Arrays]:
    """The description and the arrays of a file.

    `layout` looks at the description and says which arrays to expect; what it raises (KeyError,
    TypeError, ValueError) means that the description does not hold.
    """
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "does not exist"
        raise kind.error(f"{path} {what}; give the file of {kind.words}")
    try:
        with safe_open(path, framework="numpy") as file:
            description, text, checksum = _description(file.metadata(), path, kind)
            try:
                expected = layout(description)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as wrong:
                raise kind.error(f"{path} has a description that does not hold: {wrong}") from wrong
            arrays = _arrays(file, expected, path, kind)
    except (SafetensorError, OSError) as wrong:
        raise kind.error(
            f"{path} is not {kind.words} of vace-ad, or is truncated: {wrong}"
        ) from wrong
    if digest(text, arrays) != checksum:
        raise kind.error(f"{path} was altered after it was written: its checksum is another")
    return description, arrays


def unpack(data: bytes, kind: FileKind, name: str) -> tuple[dict[str, Any], Arrays]:
    """The description and the arrays, of any shape, that `pack` put into bytes."""
    try:
        size = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + size])["__metadata__"]
        description, text, checksum = _description(metadata, name, kind)
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as wrong:
        if isinstance(wrong, kind.error):
            raise
        raise kind.error(
            f"{name} is not {kind.words} of vace-ad, or is truncated: {wrong}"
        ) from wrong
    forms = description.get("arrays", _forms(arrays))  # files of earlier releases have none
    if digest(text, arrays) != checksum or forms != _forms(arrays):
        raise kind.error(f"{name} was altered after it was written: its checksum is another")
    return description, arrays


def _forms(arrays: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Type and shape of each array: the checksum sees bytes alone, and the description."""
    return {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}


def _description(
    metadata: object, path: str | PathLike[str], kind: FileKind
) -> tuple[dict[str, Any], str, str]:
    """The JSON description with its text and checksum; refuses foreign and other versions."""
    if not isinstance(metadata, Mapping) or metadata.get("format") != kind.format:
        raise kind.error(f"{path} is a safetensors file, but not {kind.words} of vace-ad")
    text, checksum = metadata.get("description", ""), metadata.get("sha256", "")
    if len(text) > _LARGEST_DESCRIPTION:
        raise kind.error(f"{path} has a description of {len(text)} bytes, which is too long")
    try:
        description = json.loads(text)
        version = description["format_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as wrong:
        raise kind.error(f"{path} has a description that cannot be read: {wrong!r}") from wrong
    if version != kind.version:
        raise kind.error(
            f"{path} has format version {version!r}, this vace-ad reads {kind.version}; it was "
            f"written by vace-ad {description.get('package_version')}: use that version, or make "
            "it again with this one"
        )
    return description, text, checksum


def _arrays(file: Any, expected: Layout, path: str | PathLike[str], kind: FileKind) -> Arrays:
    """The arrays, each of the type and shape that is expected (None: any length)."""
    present = set(file.keys())
    if present != set(expected):
        odd = ", ".join(sorted(present ^ set(expected))[:5])
        raise kind.error(f"{path} lacks arrays or has foreign ones: {odd}")
    for name, (dtype, shape) in expected.items():
        header = file.get_slice(name)
        found, given = tuple(header.get_shape()), header.get_dtype()
        fits = len(found) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, found, strict=True)
        )
        if given != dtype or not fits:
            raise kind.error(
                f"{path} has an array {name} of {given}{list(found)}, expected {dtype}{list(shape)}"
            )
    arrays: Arrays = {}
    for name in expected:
        arrays[name] = file.get_tensor(name)
        if not np.isfinite(arrays[name]).all():
            raise kind.error(f"{path} has values in {name} that are not finite")
    return arrays


def digest(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """A checksum over the description and every array."""
    sha = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        sha.update(name.encode())
        sha.update(np.ascontiguousarray(arrays[name]).tobytes())
    return sha.hexdigest()
