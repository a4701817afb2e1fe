"""Pages generated from the code (command line, settings, live keys, errors) and from results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from study_page import study  # beside this file

from vace_ad import VACE, errors
from vace_ad.config import PRESETS, Reproduction, VACEConfig
from vace_ad.live.settings import Settings, keys_of


def cell(text: object) -> str:
    """Text that keeps its place in a table."""
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|").strip()


# ------------------------------------------------------------------ command line


def command_line() -> str:
    """Every command with its arguments and options, from the command itself."""
    import typer

    from vace_ad.cli.main import app

    lines = [
        "# Command line",
        "",
        "Generated from the command itself; `vace COMMAND --help` prints the same.",
        "",
    ]
    lines += _statuses()
    for path, command in _commands(typer.main.get_command(app), "vace"):
        lines += [f"## {path}", "", *_words(command.help or ""), ""]
        lines += _parameters(command)
    return "\n".join(lines) + "\n"


def _statuses() -> list[str]:
    from vace_ad.cli.main import UNFORESEEN

    return [
        "| exit status | meaning |",
        "|---|---|",
        "| 0 | success |",
        "| 2 | the input or an option cannot be used; one sentence says why |",
        "| 3 | events were found, with `--fail-on-events` |",
        f"| {UNFORESEEN} | an internal error; `--debug` shows the traceback |",
        "",
    ]


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    context = command.make_context(path, [], resilient_parsing=True)
    for name in command.list_commands(context):
        yield from _commands(command.get_command(context, name), f"{path} {name}")


def _words(text: str) -> list[str]:
    """Help text, its examples as code."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).replace("\b", "").split("\n\n"):
        lines += ["", *_paragraph(paragraph.strip())]
    return lines


def _paragraph(text: str) -> list[str]:
    if text.startswith("vace "):
        return [f"    {line}" for line in text.splitlines()]
    return [" ".join(text.split())]


def _parameters(command: Any) -> list[str]:
    panels: dict[str, list[str]] = {}
    for one in command.params:
        if getattr(one, "hidden", False):
            continue
        option = one.param_type_name == "option"
        panel = getattr(one, "rich_help_panel", None) or ("Options" if option else "Arguments")
        names = ", ".join([*one.opts, *one.secondary_opts]) if option else one.metavar or one.name
        panels.setdefault(panel, []).append(
            f"| `{names}` | {cell(one.help or '')} | {_default(one)} |"
        )
    lines = []
    for panel, rows in panels.items():
        lines += [f"**{panel}**", "", "| | | default |", "|---|---|---|", *rows, ""]
    return lines


def _default(one: Any) -> str:
    if (
        one.default is None
        or callable(one.default)
        or one.required
        or one.default in ("", [], ())
        or one.default is False
    ):
        return ""
    return f"`{cell(one.default)}`"


# ---------------------------------------------------------------------- settings


def settings() -> str:
    """The settings of the detector with their types, defaults and descriptions."""
    presets = ", ".join(f'`preset="{name}"`' for name in PRESETS)
    return "\n".join(
        [
            "# Settings",
            "",
            "All settings are keywords of `VACE`, and `--set NAME=VALUE` on the command line. An "
            "unknown name is refused, with the closest known one.",
            "",
            *_settings_table(VACEConfig),
            "",
            "## Settings of the paper",
            "",
            f"Settings to reproduce the paper and its ablations; {presets} set them together. "
            "None of them needs to be changed in practice.",
            "",
            *_settings_table(Reproduction),
            "",
        ]
    )


def _settings_table(kind: type[Any]) -> list[str]:
    words = parameters(inspect.getdoc(VACE.__init__) or "")
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    default = kind()
    for one in fields(kind):
        if one.name == "reproduction":
            continue
        value = repr(getattr(default, one.name))
        rows.append(f"| `{one.name}` | `{one.type}` | `{value}` | {cell(words[one.name])} |")
    return rows


def parameters(docstring: str) -> dict[str, str]:
    """The description of each parameter of a docstring in NumPy's style."""
    found = re.findall(r"^(\w+)\n((?:    .+(?:\n|$))+)", docstring, flags=re.M)
    return {name: " ".join(text.split()) for name, text in found}


# ------------------------------------------------------------------ live settings


def watch() -> str:
    """Every key of the file that `vace watch` reads."""
    from vace_ad.live.config import SECTIONS
    from vace_ad.live.plugins import kinds

    lines = [
        "# Live configuration",
        "",
        "Generated from the code that checks the file. `vace watch plant.toml --init` writes a "
        "file with every key and its meaning; an unknown key is refused, with the "
        "closest known one.",
        "",
    ]
    for group in ("source", "sink"):
        title = "[source]" if group == "source" else "[[sink]]"
        for name, kind in kinds(group).items():
            lines += [f'## {title} kind = "{name}"', "", *_keys(kind.load().SETTINGS), ""]
    for name, table in SECTIONS.items():
        lines += [f"## [{name}]", "", *_keys(table), ""]
    return "\n".join(lines)


def _keys(section: type[Settings]) -> list[str]:
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for one in keys_of(section):
        shown = f"`{cell(one.default)}`" if one.default else "required" if one.required else "none"
        if one.example and not one.default:
            shown += f", such as `{cell(one.example)}`"
        rows.append(f"| `{one.name}` | {shown} | {cell(one.words)} |")
    return rows


# ------------------------------------------------------------------------ errors


def error_page() -> str:
    """The exception tree and what each means."""
    tree, _, rest = (errors.__doc__ or "").partition("VaceWarning")
    lines = ["# Errors", "", "Generated from `vace_ad.errors`.", "", "```text"]
    lines += tree.strip().splitlines()[2:]
    lines += ["```", "", f"VaceWarning{rest.rstrip()}", ""]
    lines += ["| error | also a | meaning |", "|---|---|---|"]
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and kind.__module__ == errors.__name__:
            bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
            lines.append(f"| `{name}` | {bases} | {cell(inspect.getdoc(kind))} |")
    return "\n".join(lines) + "\n\n" + _HANDLING


_HANDLING = """\
One `except` catches all errors that the package raises on purpose:

```python
import numpy as np

from vace_ad import VACE, VaceError

try:
    VACE().fit(np.zeros((20, 3)))
except VaceError as error:
    print(error)  # what was given, what was expected, what to do
```

On the command line an error is one sentence and exit status 2.
"""

PAGES: dict[str, Callable[[], str]] = {
    "reference/cli.md": command_line,
    "reference/settings.md": settings,
    "reference/watch.md": watch,
    "reference/errors.md": error_page,
    "research/study.md": study,
}
