"""Settings: declared once, spelt as a keyword in Python and as an option on the command line.

A message holds them marked, so that whoever shows it chooses the spelling.
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import Any, NamedTuple

_MARK = "\x1a"
_MARKED = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}")


def setting(
    default: Any, help: str, metavar: str | None = None, *, flag: str = "", panel: str | None = None
) -> Any:
    """A field of a dataclass that is a setting, with what `help` and `--help` say of it."""
    words = {"help": help, "metavar": metavar, "flag": flag, "panel": panel}
    return field(default=default, metadata=words)


class Hint(NamedTuple):
    """A setting to change; the value True is a switch, None names the setting alone."""

    name: str
    value: Any = None

    def spelt(self, *, options: bool) -> str:
        """`--time-zone UTC` as an option, `time_zone='UTC'` as a keyword."""
        if not options:
            return self.name if self.value is None else f"{self.name}={self.value!r}"
        flag = f"--{self.name.replace('_', '-')}"
        return flag if self.value is None or self.value is True else f"{flag} {self.value}"


def option(name: str, value: Any = None) -> str:
    """A setting within the text of a message."""
    return f"{_MARK}{json.dumps([name, value])}{_MARK}"


def hints(text: str) -> tuple[Hint, ...]:
    """The settings that a text names."""
    return tuple(Hint(*json.loads(found)) for found in _MARKED.findall(text))


def spelt(text: str, *, options: bool = False) -> str:
    """A text for people, its settings as options of the command line or as keywords."""
    return _MARKED.sub(lambda found: Hint(*json.loads(found[1])).spelt(options=options), text)
