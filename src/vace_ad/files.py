"""The model file: one safetensors file, its description as JSON in the metadata.

Loading executes nothing. Before an array is read, the description, the names, the types and the
shapes are checked against what the settings imply; afterwards the values must be finite and the
checksum must fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import vace_ad
from vace_ad.config import VACEConfig
from vace_ad.errors import ConfigError, ModelFileError
from vace_ad.method.geometry import Geometry
from vace_ad.state import Layout, detector_arrays, detector_layout, restore

if TYPE_CHECKING:
    from vace_ad.detector import VACE

Arrays = dict[str, NDArray[Any]]
FORMAT = "vace-ad model"
FORMAT_VERSION = 1
_LARGEST_DESCRIPTION = 64 * 2**20  # bytes
_COMPUTING = ("engine", "precision", "device")


def save(detector: VACE, path: str | PathLike[str]) -> None:
    """Write a fitted detector to one file, whole or not at all."""
    arrays = {
        name: np.ascontiguousarray(array) for name, array in detector_arrays(detector).items()
    }
    description = {
        "format_version": FORMAT_VERSION,
        "package_version": vace_ad.__version__,
        "config": detector.config.to_dict(),
        "channels": list(detector.channels_),
        "geometry": asdict(detector.geometry_),
        "facts": detector.facts_,
    }
    text = json.dumps(description)
    metadata = {"format": FORMAT, "description": text, "sha256": _digest(text, arrays)}
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    try:
        save_file(arrays, temporary, metadata)
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's 0600 is for secrets
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def read(path: str | PathLike[str], **computing: Any) -> VACE:
    """Read a detector; `engine`, `precision` and `device` may be chosen anew."""
    from vace_ad.detector import VACE

    for name in computing:
        if name not in _COMPUTING:
            raise ConfigError(
                f"{name!r} cannot be changed on loading, only {', '.join(_COMPUTING)} can"
            )
    try:
        with safe_open(path, framework="numpy") as file:
            description, text, digest = _description(file.metadata(), path)
            config, channels, geometry = _settings(description, path)
            arrays = _arrays(file, detector_layout(config, len(channels)), path)
    except SafetensorError as error:
        raise ModelFileError(f"{path} is not a model file, or is truncated: {error}") from error
    if _digest(text, arrays) != digest:
        raise ModelFileError(f"{path} was altered after it was written: its checksum is another")
    detector = VACE(**{**config.to_dict(), **computing})
    detector.channels_, detector.geometry_ = channels, geometry
    detector.facts_ = description["facts"]
    restore(detector, arrays)
    return detector


def _description(
    metadata: dict[str, str] | None, path: str | PathLike[str]
) -> tuple[dict[str, Any], str, str]:
    """The JSON description with its text and checksum; refuses foreign and newer files."""
    if not metadata or metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a safetensors file, but not one of vace-ad's models")
    text, digest = metadata.get("description", ""), metadata.get("sha256", "")
    if len(text) > _LARGEST_DESCRIPTION:
        raise ModelFileError(f"{path} has a description of {len(text)} bytes, which is too long")
    try:
        description = json.loads(text)
        version = description["format_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path} has a description that cannot be read: {error!r}") from error
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version!r}, this vace-ad reads {FORMAT_VERSION}; it was "
            f"written by vace-ad {description.get('package_version')}, use that version or newer"
        )
    return description, text, digest


def _settings(
    description: dict[str, Any], path: str | PathLike[str]
) -> tuple[VACEConfig, tuple[str, ...], Geometry]:
    try:
        settings = {
            k: tuple(v) if isinstance(v, list) else v for k, v in description["config"].items()
        }
        config = VACEConfig.from_preset(None, **settings)
        channels = tuple(description["channels"])
        geometry = Geometry(**description["geometry"])
        sound = isinstance(description["facts"], dict) and len(channels) > 0
    except (ConfigError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path} has a description that does not hold: {error}") from error
    if not sound or not all(isinstance(name, str) for name in channels):
        raise ModelFileError(f"{path} has a description that does not hold: channels or facts")
    return config, channels, geometry


def _arrays(
    file: Any,
    expected: Layout,
    path: str | PathLike[str],
) -> Arrays:
    """The arrays, each of the type and shape that is expected (None: any length)."""
    present = set(file.keys())
    if present != set(expected):
        odd = ", ".join(sorted(present ^ set(expected))[:5])
        raise ModelFileError(f"{path} lacks arrays or has foreign ones: {odd}")
    arrays: Arrays = {}
    for name, (dtype, shape) in expected.items():
        header = file.get_slice(name)
        found, kind = tuple(header.get_shape()), header.get_dtype()
        fits = len(found) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, found, strict=True)
        )
        if kind != dtype or not fits:
            raise ModelFileError(
                f"{path} has an array {name} of {kind}{list(found)}, expected {dtype}{list(shape)}"
            )
    for name in expected:
        arrays[name] = file.get_tensor(name)
        if not np.isfinite(arrays[name]).all():
            raise ModelFileError(f"{path} has values in {name} that are not finite")
    return arrays


def _digest(text: str, arrays: Arrays) -> str:
    """A checksum over the description and every array."""
    sha = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        sha.update(name.encode())
        sha.update(np.ascontiguousarray(arrays[name]).tobytes())
    return sha.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
