"""Versions of a model, kept beside it with their training range and evaluation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vace_ad.errors import ModelFileError
from vace_ad.tensor_file import write

if TYPE_CHECKING:
    from vace_ad.detector import VACE


@dataclass(frozen=True)
class Version:
    """One version of a model."""

    number: int
    digest: str  # of all that shapes its scores
    when: str  # it came into use, in UTC
    rows: int  # that it learned from
    trained: tuple[str, str] | None = None  # its training range
    found: int | None = None  # faults, of those known when it was judged
    false_alarms: int | None = None
    judged_rows: int = 0


class Versions:
    """The versions of a model file, in the folder `plant.vace.versions` beside it."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._folder = model.with_name(model.name + ".versions")
        self._index = self._folder / "versions.json"
        self.every: list[Version] = []
        if not self._index.is_file():
            return
        try:
            known = json.loads(self._index.read_text("utf-8"))
            self.every = [
                Version(**{**one, "trained": tuple(one["trained"]) if one["trained"] else None})
                for one in known["versions"]
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelFileError(
                f"{self._index} cannot be read ({type(error).__name__}); remove the folder to "
                "start over, or restore the file"
            ) from error

    @property
    def active(self) -> int:
        """Number of the version that the model file is; 0 for none: another was written there."""
        used = self._model.read_bytes() if self._model.is_file() else None
        kept = (one.number for one in reversed(self.every) if self.file(one.number).is_file())
        return next((one for one in kept if self.file(one).read_bytes() == used), 0)

    def file(self, number: int) -> Path:
        """Where a version is kept."""
        return self._folder / f"{number:04d}.vace"

    def adopt(self, detector: VACE, **about: Any) -> Version:
        """Keep a detector as the next version, and put it in use."""
        number = max((one.number for one in self.every), default=0) + 1
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows, digest = int(detector.facts_["rows"]), detector.model_.digest
        version = Version(number, digest, now, rows, **about)
        self._folder.mkdir(exist_ok=True)
        detector.model_.save(self.file(number))
        plain = {"versions": [asdict(one) for one in (*self.every, version)]}
        write(self._index, json.dumps(plain, indent=1).encode())
        self.every.append(version)
        self.use(number)
        return version

    def use(self, number: int) -> Version:
        """Put a version in use: the model file becomes it, whole or not at all."""
        version = next((one for one in self.every if one.number == number), None)
        if version is None or not self.file(number).is_file():
            known = ", ".join(str(one.number) for one in self.every) or "none"
            raise ModelFileError(f"{self._model} has no version {number}; kept are: {known}")
        write(self._model, self.file(number).read_bytes())
        return version

    def back(self) -> Version:
        """Put the version before the present one in use."""
        before = [one.number for one in self.every if one.number < self.active]
        if not before:
            raise ModelFileError(f"{self._model} has no version before this one to go back to")
        return self.use(before[-1])
