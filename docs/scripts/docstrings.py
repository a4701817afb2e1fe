"""A Griffe extension: what docstrings write in plain text, as Markdown shows it.

Doctests and plain tables become code blocks, and `:class:` roles become names. The defaults of
settings, `default(2)`, are shown as values.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Function, Object

_DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!>>> )\S.*\n?)*)+", re.M)
_TABLE = re.compile(r"^=+ =+\n(?:.+\n)+?=+ =+\n(?:.+\n)*?=+ =+$", re.M)
_ROLE = re.compile(r":\w+:(`[^`]+`)")
_DEFAULT = re.compile(r"default\((.*)\)")


def markdown(text: str) -> str:
    """A docstring with its doctests and tables as code blocks."""
    text = _DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
    text = _TABLE.sub(lambda found: f"```text\n{found[0]}\n```", text)
    return _ROLE.sub(r"\1", text)


class Docstrings(Extension):
    """Rewrites every docstring before it is shown."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute, and defaults."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
        if isinstance(obj, Function):
            for parameter in obj.parameters:
                if found := _DEFAULT.fullmatch(str(parameter.default)):
                    parameter.default = found[1]
