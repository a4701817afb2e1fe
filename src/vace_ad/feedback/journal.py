"""The journal of feedback, a text file beside the model: `pump.vace`, `pump.feedback.jsonl`.

Each line is one JSON object: "this was normal", "this was a fault", or the undoing of an earlier
line. Lines are only ever added, so the file is its own history. It may be read and edited by hand;
every line is checked when it is read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Self

from vace_ad import tensor_file
from vace_ad.alarms.pattern import Pattern
from vace_ad.errors import FeedbackError
from vace_ad.feedback.verdict import NORMAL, UNDO, Verdict

SUFFIX = ".feedback.jsonl"
MOST_BYTES, MOST_LINES = 64 * 2**20, 20_000


class Feedback:
    """All verdicts on the events of one model, in memory and in their file."""

    def __init__(self, lines: Sequence[Verdict] = (), path: Path | None = None) -> None:
        self.lines, self.path = list(lines), path

    @classmethod
    def beside(cls, model: str | PathLike[str]) -> Self:
        """The feedback in the file beside a model; empty where there is none."""
        path = feedback_path(model)
        return cls(_read(path), path)

    @property
    def active(self) -> tuple[Verdict, ...]:
        """Active feedback: neither undone nor an undo, in order."""
        found: dict[str, Verdict] = {}
        for line in self.lines:
            if line.verdict == UNDO:
                found.pop(line.of or "", None)
            else:
                found[line.id] = line
        return tuple(found.values())

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Patterns that raise no alarm again."""
        normal = (line for line in self.active if line.verdict == NORMAL)
        return tuple(line.pattern for line in normal if line.pattern is not None)

    def add(self, line: Verdict) -> None:
        """Add a line; the file is replaced atomically, with lines that others added meanwhile."""
        if self.path is not None:
            said = _read(self.path) or self.lines
            _write(self.path, [*said, line])
            self.lines = [*said, line]
        else:
            self.lines.append(line)

    def undo(self, id: str) -> Verdict:
        """Take back the verdict of an id; this is a line of its own."""
        if id not in {line.id for line in self.active}:
            known = ", ".join(line.id for line in self.active[-8:])
            raise FeedbackError(
                f"no feedback has the id {id!r}" + (f"; there is {known}" if known else "")
            )
        line = Verdict.new("undo", of=id)
        self.add(line)
        return line

    def move(self, model: str | PathLike[str]) -> None:
        """Keep the feedback beside another model from now on, after what is there already."""
        path = feedback_path(model)
        if path == self.path:
            return
        there = _read(path)
        known = {(line.id, line.verdict) for line in there}
        own = [line for line in self.lines if (line.id, line.verdict) not in known]
        if own:
            _write(path, [*there, *own])
        self.lines, self.path = [*there, *own], path


def feedback_path(model: str | PathLike[str]) -> Path:
    """`pump.feedback.jsonl` beside `pump.vace`."""
    path = Path(model)
    return path.with_name((path.stem if path.suffix else path.name) + SUFFIX)


def _read(path: Path) -> list[Verdict]:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise FeedbackError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise FeedbackError(f"{path} cannot be read as text: {error}") from error
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        raise FeedbackError(f"{path} has {len(lines):,} lines; at most {MOST_LINES:,} are read")
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(Verdict.from_plain(json.loads(line)))
        except (ValueError, RecursionError) as error:  # a FeedbackError is a ValueError
            raise FeedbackError(
                f"{path}, line {number}, is not feedback: {error}; correct or remove it"
            ) from error
    return found


def _write(path: Path, lines: Sequence[Verdict]) -> None:
    if len(lines) > MOST_LINES:
        raise FeedbackError(f"{path} is full: {MOST_LINES:,} lines; start a new one")
    text = "".join(json.dumps(line.to_plain(), ensure_ascii=False) + "\n" for line in lines)
    try:
        tensor_file.write(path, text.encode())
    except OSError as error:
        raise FeedbackError(f"{path} cannot be written: {error.strerror}") from error
