"""The journal of feedback, a text file beside the model: `pump.vace`, `pump.feedback.jsonl`.

Each line is one verdict as a JSON object: "this was normal", "this was a fault", or the undoing of
an earlier line. Lines are only ever added, so the file is its own history. It may be read and
edited by hand, and anyone may have written it: every field is bounded and checked when it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np

from vace_ad import tensor_file
from vace_ad.alarms.pattern import LONGEST_NAME, MOST_CHANNELS, Pattern
from vace_ad.errors import FeedbackError
from vace_ad.frames.timestamps import time_words

SUFFIX = ".feedback.jsonl"
MOST_BYTES, MOST_LINES = 64 * 2**20, 20_000
NORMAL, FAULT, UNDO = "normal", "fault", "undo"
What = Literal["normal", "fault", "undo"]
LONGEST_NOTE = 2_000


@dataclass(frozen=True)
class Verdict:
    """A person's verdict on one stretch of rows."""

    id: str
    verdict: What
    start: np.datetime64 | None = None  # of the first row, where rows have a time
    end: np.datetime64 | None = None  # of the last row
    rows: tuple[int, int] | None = None  # [start, end) in the table that was looked at
    digest: str | None = None  # of these rows, by which they are found again without a time
    channels: tuple[str, ...] = ()  # that it was about
    note: str = ""
    who: str = ""
    when: str = ""  # in UTC
    of: str | None = None  # the line that an undo takes back
    pattern: Pattern | None = None  # by which similar events are recognised

    @classmethod
    def new(cls, verdict: What, **fields: Any) -> Self:
        """A new, validated verdict; the same verdict on the same stretch has the same id."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        draft = cls("0" * 8, verdict, when=now, **fields)
        told = {k: v for k, v in draft.to_plain().items() if k not in ("id", "when", "note", "who")}
        told |= {"when": now} if verdict == UNDO else {}
        id = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]
        pattern = None if draft.pattern is None else replace(draft.pattern, id=id)
        return cls.from_plain(replace(draft, id=id, pattern=pattern).to_plain())

    def to_plain(self) -> dict[str, Any]:
        """As JSON knows it, without what is empty."""
        plain = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {name: value for name, value in plain.items() if value not in (None, "", [])}

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """The reverse of `to_plain`; raises FeedbackError for what is not valid."""
        if not isinstance(plain, Mapping):
            raise FeedbackError("it is no JSON object")
        foreign = sorted(set(plain) - {field.name for field in fields(cls)})
        if foreign:
            raise FeedbackError(f"it has a field {foreign[0][:40]!r}, which feedback does not know")
        id, verdict = _text(plain, "id", 64), _text(plain, "verdict", 16)
        if not id.isalnum() or verdict not in (NORMAL, FAULT, UNDO):
            raise FeedbackError("it needs an id of letters and digits, and a verdict of normal, "
                                "fault or undo")  # fmt: skip
        found = cls(
            id,
            cast(What, verdict),
            _moment(plain, "start"),
            _moment(plain, "end"),
            _rows(plain.get("rows")),
            _text(plain, "digest", 64) or None,
            _names(plain.get("channels", [])),
            _text(plain, "note", LONGEST_NOTE),
            _text(plain, "who", LONGEST_NAME),
            _text(plain, "when", 40),
            _text(plain, "of", 64) or None,
            Pattern.from_plain(id, plain["pattern"]) if "pattern" in plain else None,
        )
        found._check()
        return found

    def _check(self) -> None:
        if self.verdict == UNDO:
            if self.of is None:
                raise FeedbackError("an undo needs the id that it takes back, as 'of'")
            return
        if (self.start is None) != (self.end is None):
            raise FeedbackError("a stretch needs both start and end")
        if self.start is None and self.rows is None:
            raise FeedbackError("a stretch needs start and end, as times or as rows")
        if self.start is not None and self.end is not None and self.end < self.start:
            raise FeedbackError(f"a stretch ends, {self.end}, before it starts, {self.start}")

    def words(self) -> str:
        """The verdict in a line."""
        if self.verdict == UNDO:
            return f"{self.id}  undo of {self.of}"
        if self.start is not None and self.end is not None:
            when = f"{time_words(self.start, None)} to {time_words(self.end, None)}"
        else:
            when = "rows {} to {}".format(*cast(tuple[int, int], self.rows))
        about = f"  {', '.join(self.channels[:3])}" if self.channels else ""
        known = "  recognised when it recurs" if self.pattern is not None else ""
        note = f"  “{self.note}”" if self.note else ""
        return f"{self.id}  {self.verdict:<6}  {when}{about}{known}{note}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return value.to_plain() if isinstance(value, Pattern) else value


def _text(plain: Mapping[str, Any], key: str, longest: int) -> str:
    value = plain.get(key, "")
    if not isinstance(value, str) or len(value) > longest:
        raise FeedbackError(f"its {key} must be text of at most {longest:,} characters")
    return value


def _moment(plain: Mapping[str, Any], key: str) -> np.datetime64 | None:
    text = _text(plain, key, 64)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text[:26] if "." in text else text)
        exact = np.datetime64(text, "ns") if moment.tzinfo is None else None
    except ValueError:
        raise FeedbackError(
            f"its {key} is not a time: {text[:40]!r}; write 2026-01-31T13:45"
        ) from None
    if exact is None:
        exact = np.datetime64(moment.astimezone(UTC).replace(tzinfo=None), "ns")
    if np.isnat(exact):
        raise FeedbackError(f"its {key} is not a time")
    return exact


def _rows(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    whole = isinstance(value, list) and len(value) == 2 and all(type(x) is int for x in value)
    if not whole or not 0 <= value[0] < value[1] < 2**53:
        raise FeedbackError("its rows must be two numbers, 0 ≤ start < end")
    return value[0], value[1]


def _names(value: Any) -> tuple[str, ...]:
    fits = isinstance(value, list) and len(value) <= MOST_CHANNELS
    if not fits or not all(isinstance(x, str) and 0 < len(x) <= LONGEST_NAME for x in value):
        raise FeedbackError(f"its channels must be a list of at most {MOST_CHANNELS:,} names")
    return tuple(value)


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
