"""Weights of pretrained systems: a folder on this machine, read strictly, never fetched.

A detector names its folder by the setting `weights`, else by an environment variable. Names and
shapes must be exactly those that the folder's config.json implies: a tensor too few, too many or
of another shape is an error, as a network with a part left at random still gives plausible scores.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError, ModelFileError

Tensors = dict[str, NDArray[np.float32]]
Shapes = Mapping[str, tuple[int, ...]]

_SHOWN = 4  # names in a message


@dataclass(frozen=True)
class Source:
    """Where a system's weights are looked for, and where a person gets them."""

    system: str
    variable: str  # of the environment, names the folder
    origin: str  # where to download them

    def folder(self, setting: str | None) -> Path:
        """The folder of the setting, or else of the environment variable."""
        named = setting or os.environ.get(self.variable)
        if not named:
            raise ConfigError(
                f"{self.system} is pretrained and its weights are not part of this package: "
                f"download {self.origin} into a folder and name it by the environment variable "
                f"{self.variable} or the setting weights='FOLDER'"
            )
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise ConfigError(
                f"the folder of {self.system}'s weights, {str(folder)!r}, does not exist; download "
                f"{self.origin} into it, or correct {self.variable}"
            )
        return folder

    def file(self, folder: Path, *names: str) -> Path:
        """The first of the files that the folder has."""
        for name in names:
            if (folder / name).is_file():
                return folder / name
        raise ModelFileError(
            f"{str(folder)!r} has no {' or '.join(names)}; {self.system} needs it: download "
            f"{self.origin} again, all files into this one folder"
        )

    def config(self, folder: Path) -> dict[str, Any]:
        """The numbers of config.json."""
        path = self.file(folder, "config.json")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelFileError(
                f"{str(path)!r} is not JSON ({error}); download it again"
            ) from error
        if not isinstance(found, dict):
            raise ModelFileError(f"{str(path)!r} holds no JSON object; download it again")
        return found


def read_tensors(path: Path) -> Tensors:
    """The tensors of a .safetensors file, or of a .bin file; no code of the file is run."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            found = load_file(path)
        else:
            from vace_study.baselines.networks.backend import import_torch

            torch = import_torch("a .bin file of weights")
            loaded = torch.load(path, map_location="cpu", weights_only=True)
            found = {name: tensor.float().numpy() for name, tensor in loaded.items()}
    except ImportError:
        raise
    except Exception as error:  # both formats fail in many ways, and all mean the same
        raise ModelFileError(
            f"{str(path)!r} cannot be read as tensors ({type(error).__name__}: {error}); "
            "download it again"
        ) from error
    return {name: np.asarray(array, np.float32) for name, array in found.items()}


def fingerprint(tensors: Tensors) -> str:
    """Twelve hexadecimal digits of names and values: which weights a result was made with."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()[:12]


def check_tensors(tensors: Tensors, expected: Shapes, path: Path) -> None:
    """Refuse any name too few or too many, and any other shape."""
    problems = []
    if missing := sorted(set(expected) - set(tensors)):
        problems.append(f"missing: {_some(missing)}")
    if extra := sorted(set(tensors) - set(expected)):
        problems.append(f"not known: {_some(extra)}")
    wrong = [
        f"{name} is {tensors[name].shape}, expected {shape}"
        for name, shape in expected.items()
        if name in tensors and tensors[name].shape != shape
    ]
    if wrong:
        problems.append(f"of another shape: {_some(wrong)}")
    if problems:
        raise ModelFileError(
            f"{str(path)!r} does not fit its config.json ({'; '.join(problems)}); "
            "take both files from the same release of the model"
        )


def number(config: Mapping[str, Any], name: str, path: Path) -> int:
    """A positive whole number of a configuration; one-element lists are accepted."""
    value = config.get(name)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]  # some classes store a number as a one-element tuple
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelFileError(
            f"config.json in {str(path)!r} has {name} = {value!r}; a whole number of at least 1 "
            "is needed: take config.json and the weights from the same release of the model"
        )
    return value


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
