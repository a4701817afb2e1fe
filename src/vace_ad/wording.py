"""Terminal-safe text, plurals and other wording."""

from __future__ import annotations

import re
import unicodedata

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
