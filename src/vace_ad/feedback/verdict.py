"""One verdict of a person: "this was normal", "this was a fault", or the undoing of another.

Verdicts come from files that anyone may have written, so every field is bounded and checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self, cast

import numpy as np

from vace_ad.alarms.pattern import LONGEST_NAME, MOST_CHANNELS, Pattern
from vace_ad.errors import FeedbackError

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
        plain: dict[str, Any] = {
            "id": self.id,
            "verdict": self.verdict,
            "of": self.of,
            "start": None if self.start is None else str(self.start),
            "end": None if self.end is None else str(self.end),
            "rows": None if self.rows is None else list(self.rows),
            "digest": self.digest,
            "channels": list(self.channels),
            "note": self.note,
            "who": self.who,
            "when": self.when,
            "pattern": None if self.pattern is None else self.pattern.to_plain(),
        }
        return {key: value for key, value in plain.items() if value not in (None, "", [])}

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
        if self.start is not None:
            when = f"{_short(self.start)} to {_short(self.end)}"
        else:
            when = "rows {} to {}".format(*cast(tuple[int, int], self.rows))
        about = f"  {', '.join(self.channels[:3])}" if self.channels else ""
        known = "  recognised when it recurs" if self.pattern is not None else ""
        note = f"  “{self.note}”" if self.note else ""
        return f"{self.id}  {self.verdict:<6}  {when}{about}{known}{note}"


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


def _short(time: np.datetime64 | None) -> str:
    text = str(time.astype("datetime64[ms]")).replace("T", " ") if time is not None else ""
    return text.removesuffix(".000").removesuffix(":00")
