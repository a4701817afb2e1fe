"""Model files and states of streams: damaged by accident, and forged with a checksum that fits."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from fuzz.mutate import NUMBERS, damaged, json_damaged
from fuzz.target import BrokenError, Target
from vace_ad import VACE, load, tensor_file
from vace_ad.errors import VaceWarning
from vace_ad.stream import Stream

SMALL = {
    "patch_length": 8,
    "encoders": 1,
    "widths": (8, 8, 8, 4),
    "engine": "numpy",
    "random_state": 0,
}
NUMPY = (np.float64, np.float32, np.int64, np.uint8, np.bool_)


def rows(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    phase = np.arange(n)[:, None] / [3.0, 5.0, 11.0]
    return np.sin(phase) + 0.1 * rng.normal(size=(n, 3))


def header(data: bytes) -> dict[str, Any]:
    """The JSON at the head of a safetensors file."""
    (size,) = struct.unpack("<Q", data[:8])
    found = json.loads(data[8 : 8 + size])
    return dict(found)


def checksum(data: bytes) -> str | None:
    """The checksum that a file says of itself; None where it says none."""
    try:
        return str(header(data)["__metadata__"]["sha256"])
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError):
        return None


def header_damaged(data: bytes, rng: Random) -> bytes:
    """Other names, types, shapes, offsets or metadata over the same numbers."""
    (size,) = struct.unpack("<Q", data[:8])
    text = json.dumps(json_damaged(header(data), rng)).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def description_forged(data: bytes, rng: Random) -> bytes:
    """Another description, with a checksum that fits."""
    meta = header(data)["__metadata__"]
    description = json.loads(meta["description"])
    for _ in range(rng.choice((1, 1, 2))):
        description = json_damaged(description, rng)
    return signed(json.dumps(description), load_arrays(data), meta)


def arrays_forged(data: bytes, rng: Random) -> bytes:
    """Other numbers, shapes, types or names, with a checksum that fits."""
    meta, arrays = header(data)["__metadata__"], dict(load_arrays(data))
    for _ in range(rng.choice((1, 1, 2, 5))):
        name = rng.choice(sorted(arrays))
        array = arrays[name] = arrays[name].copy()
        what = rng.randrange(8)
        with np.errstate(all="ignore"):
            if what <= 2 and array.size:
                value = rng.choice((*NUMBERS, float("nan"), float("inf")))
                flat = array.reshape(-1)
                where = slice(None) if what == 0 else rng.randrange(array.size)
                flat[where] = np.array(value, np.float64).astype(array.dtype)
            elif what == 3:
                arrays[name] = array * np.array(rng.choice((0, -1, 1e10, 1e-10))).astype(
                    array.dtype
                )
            elif what == 4:
                arrays[name] = array[: rng.randint(0, len(array))] if array.ndim else array
            elif what == 5:
                arrays[name] = array.astype(rng.choice(NUMPY))
            elif what == 6:
                arrays[name] = array.reshape(-1) if rng.random() < 0.5 else array[None]
            elif len(arrays) > 1:
                arrays[rng.choice(("x", *sorted(arrays)))] = arrays.pop(name)
    return signed(meta["description"], arrays, meta)


def signed(text: str, arrays: dict[str, np.ndarray], meta: dict[str, str]) -> bytes:
    kept = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return bytes(
        save_arrays(kept, {**meta, "description": text, "sha256": tensor_file.digest(text, kept)})
    )


class _Safetensors(Target):
    """What both kinds of file have in common."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore", VaceWarning)
        noise = np.random.default_rng(0).normal(size=(400, 3))  # no seasonality: no encoders
        without = VACE(random_state=0).fit(noise)
        self.detectors = [without, VACE(**SMALL, shape="always").fit(rows(400, 0))]
        self.test = rows(320, 1)

    def damage(self, data: bytes, rng: Random) -> bytes:
        ways = (damaged, header_damaged, description_forged, arrays_forged, arrays_forged)
        try:
            return rng.choice(ways)(data, rng)
        except (ValueError, KeyError, TypeError, AttributeError, struct.error, SafetensorError):
            return damaged(data, rng)  # too broken for structure

    def check(self, data: bytes, scores: np.ndarray) -> None:
        """The scores that stand behind this checksum, or at least finite ones."""
        known = self.expected.get(checksum(data) or "")
        if known is not None and not np.array_equal(known, scores, equal_nan=True):
            raise BrokenError("other scores from a file whose checksum fits")
        if not np.isfinite(scores[self.certain :]).all():
            raise BrokenError("scores that are not finite, and no error")

    expected: dict[str, np.ndarray]
    certain = 0  # scores from here on are finite, whatever was forged


class ModelFile(_Safetensors):
    """`load`, then scores of a fixed table."""

    def __init__(self) -> None:
        super().__init__()
        self.good = []
        self.expected = {}
        for detector in self.detectors:
            data = tensor_file.pack(*_packed(detector))
            self.good.append(data)
            self.expected[str(checksum(data))] = detector.score(self.test)

    def seeds(self) -> list[bytes]:
        return self.good

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        path = folder / "m.vace"
        path.write_bytes(data)
        detector = load(path)
        width = len(detector.channels_)
        if width > 50:
            return
        self.check(data, detector.score(np.resize(self.test, (len(self.test), width))))
        found = detector.detect(np.resize(self.test, (len(self.test), width)))
        for shown in (detector, found):
            repr(shown)
            shown._repr_html_()
        if thorough:
            detector.save(folder / "again.vace")
            load(folder / "again.vace")


def _packed(detector: VACE) -> tuple[Any, Any, Any]:
    from vace_ad.model import KIND

    model = detector.model_
    return KIND, model._description(), model._arrays()


class StateFile(_Safetensors):
    """`Stream.from_bytes`, then more rows."""

    certain = -1  # rows that wait in a forged state may have none

    def __init__(self) -> None:
        super().__init__()
        self.good, self.expected, self.of = [], {}, {}
        for detector in self.detectors:
            for n in (3, 100):
                stream = detector.stream()
                stream.add(self.test[:n])
                data = stream.to_bytes()
                self.good.append(data)
                self.of[json.loads(header(data)["__metadata__"]["description"])["model"]] = detector
                self.expected[str(checksum(data))] = self.rest(stream)

    def rest(self, stream: Stream) -> np.ndarray:
        added = [stream.add(self.test[:300]), stream.add(self.test[300]), stream.finish()]
        return np.concatenate([each.scores for each in added])

    def seeds(self) -> list[bytes]:
        return self.good

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        detector = self.detectors[0]
        try:
            named = json.loads(header(data)["__metadata__"]["description"])["model"]
            detector = self.of.get(named, detector)
        except (ValueError, KeyError, TypeError, struct.error, AttributeError, RecursionError):
            pass
        stream = Stream.from_bytes(data, detector)
        scores = self.rest(stream)
        self.check(data, scores)
        if thorough:
            Stream.from_bytes(stream.to_bytes(), detector)
