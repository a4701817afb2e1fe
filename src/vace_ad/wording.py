"""Terminal-safe text, plurals and other wording."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

# What terminals obey: ESC [ … letter, ESC ] … end (a title, a link), ESC and a sign.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)


def plain_text(text: str) -> str:
    """Text without escape sequences and control characters; line ends and tabs become spaces.

    Line ends that are ours, at the beginning, stay.
    """
    head = len(text) - len(text.lstrip("\n"))
    return text[:head] + "".join(
        " " if sign in "\n\r\t" else sign
        for sign in _SEQUENCE.sub("", text[head:])
        if sign in "\n\r\t" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs")
    )


def plural(count: int, word: str, many: str | None = None) -> str:
    """Return e.g. "1 event", "1,204 events" or "2 entities"."""
    return f"{count:,} {word if count == 1 else many or word + 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return e.g. "a, b, c", or "a, b and 1,204 more" where only so many are shown."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def rarity(probability: float, normal_rows: int | None) -> str:
    """Return how often normal operation shows as much, e.g. "1 in 12,000 rows".

    What is rarer than the normal rows can show is "none in 4,176 rows"; empty where it is not
    known.
    """
    if not math.isfinite(probability):
        return ""
    if normal_rows is not None and probability * normal_rows < 1:
        return f"none in {plural(normal_rows, 'row')}"
    one_in = 1 / max(probability, 1e-9)
    size = 10 ** max(0, math.floor(math.log10(one_in)) - 1)  # keep two digits
    return f"1 in {round(one_in / size) * size:,} rows"
