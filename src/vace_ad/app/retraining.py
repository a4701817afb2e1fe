"""Retraining: a model of recent rows, used only if it is not worse; and the versions of a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vace_ad.detector import VACE
from vace_ad.errors import ModelFileError, TooShortError
from vace_ad.frames.spans import Span, rows_of
from vace_ad.frames.timestamps import time_words
from vace_ad.progress import Progress, silent
from vace_ad.tensor_file import write

if TYPE_CHECKING:
    from vace_ad.alarms import Budget
    from vace_ad.frames.table import Table

SHARE = 0.7  # of the recent rows that the new model learns from; the others judge both


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


class Worth(NamedTuple):
    """The evaluation of a model on held-out rows."""

    found: int  # faults
    faults: int
    false_alarms: int

    @property
    def words(self) -> str:
        """The evaluation for display."""
        faults = f"{self.found} of {self.faults} faults found, " if self.faults else ""
        return f"{faults}{self.false_alarms} false alarms"


class Comparison(NamedTuple):
    """Both models on the same rows, and the version of the new one."""

    present: Worth
    new: Worth
    rows: int  # that judged both
    version: Version | None = None  # None: it was not taken

    @property
    def better(self) -> bool:
        """Whether the new one finds as many faults with no more false alarms."""
        found = self.new.found >= self.present.found
        return found and self.new.false_alarms <= self.present.false_alarms


def retrain(
    path: Path,
    present: VACE,
    table: Table,
    budget: Budget,
    *,
    faults: Sequence[Span] = (),
    left_out: Sequence[Span] = (),
    share: float = SHARE,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Comparison:
    """Fit on the first rows of a table, compare on the others, and keep the new model if better.

    Rows of `faults`, which are known, and those `left_out` are not trained on.
    """
    said = [one for one in present.feedback.active if one.verdict == "fault"]
    faults = [*faults, *(Span(str(one.start), str(one.end)) for one in said if one.start)]
    cut = int(share * len(table))
    rows = len(table) - cut
    if rows < present.model_.reach:
        raise TooShortError(
            f"got {len(table):,} rows, of which {rows:,} would judge; at least "
            f"{present.model_.reach} are needed for that: give more rows, or a smaller --share"
        )
    skipped = [*faults, *left_out]
    new = VACE(**present.get_params()).fit(table[:cut], labels=skipped or None, progress=progress)
    worths = [_worth(one, table, cut, faults, budget) for one in (present, new)]
    found = Comparison(worths[0], worths[1], rows)
    if not found.better or dry_run:
        return found
    versions = Versions(path)
    if not versions.active:  # the first, or one that was fitted since
        versions.adopt(present, **_about(found.present, rows))
    ends = None
    if table.time is not None:
        ends = tuple(time_words(table.time[row], table.zone) for row in (0, cut - 1))
    return found._replace(version=versions.adopt(new, trained=ends, **_about(found.new, rows)))


def _worth(
    detector: VACE, table: Table, first: int, faults: Sequence[Span], budget: Budget
) -> Worth:
    """Evaluate a model on the last rows; the rows before serve as warm-up."""
    found = detector.detect(table, budget=budget, first=first).anomalies
    ranges = rows_of(faults, table.time, table.zone) if faults else []
    ranges = [(a, b) for a, b in ranges if b > first and a < b]

    def near(a: int, b: int) -> bool:
        return any(one.start < b and a < one.end for one in found)

    false = sum(not any(a < one.end and one.start < b for a, b in ranges) for one in found)
    return Worth(sum(near(a, b) for a, b in ranges), len(ranges), false)


def _about(worth: Worth, rows: int) -> dict[str, Any]:
    return {"found": worth.found, "false_alarms": worth.false_alarms, "judged_rows": rows}
