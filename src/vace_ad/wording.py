"""Terminal-safe text, plurals, numbers and other wording."""

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


def rarity_sentence(probability: float, normal_rows: int | None) -> str:
    """Return `rarity` as a sentence; empty where it is not known."""
    said = rarity(probability, normal_rows)
    if said.startswith("none") and normal_rows is not None:
        return f"It is rarer than anything in {plural(normal_rows, 'normal row')}."
    return f"Normal operation shows one as strong about once in {said[5:]}." if said else ""


def number(value: float, digits: int = 4) -> str:
    """Return a number with so many significant digits, grouped by thousands where large."""
    if not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if 1e-4 <= abs(value) < 10**digits:
        return f"{value:.{digits}g}"
    return f"{value:,.0f}" if 1 <= abs(value) < 1e9 else f"{value:.{digits - 1}e}"


def limit_words(first: float, last: float) -> str:
    """Return e.g. "limit 1.95 at the start, 3.88 at the end", one number where it stays."""
    start, end = number(first, 3), number(last, 3)
    if start == end:
        return f"limit {start}"
    return f"limit {start} at the start, {end} at the end"


def shortened(name: str, longest: int = 36) -> str:
    """Return a long name without its middle: what tells names apart is often at the end."""
    if len(name) <= longest:
        return name
    tail = longest // 2
    return f"{name[: longest - tail - 1]}…{name[-tail:]}"
