"""Groups of options: a command takes whole dataclasses, and typer sees one option a field."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from vace_ad.errors import VaceError
from vace_ad.frames.read_options import Names, ReadOptions

_READING = "How the table is read"


class Without(tuple[str, ...]):
    """Fields of a group that a command does not take."""


def parameters(run: Callable[..., None]) -> Callable[..., None]:
    """A command for typer, whose groups of options are single ones; Ctrl-C is one sentence."""
    hints = get_type_hints(run, include_extras=True)
    groups: dict[str, tuple[Any, list[str]]] = {}
    shown: list[inspect.Parameter] = []
    for one in inspect.signature(run).parameters.values():
        group, *rest = _parts(hints[one.name])
        if not is_dataclass(group):
            kind = inspect.Parameter.KEYWORD_ONLY
            shown.append(one.replace(annotation=hints[one.name], kind=kind))
            continue
        left_out = {name for without in rest if isinstance(without, Without) for name in without}
        singles = [single for single in _options(group) if single.name not in left_out]
        groups[one.name] = group, [single.name for single in singles]
        shown += singles

    def command(**given: Any) -> None:
        for name, (group, names) in groups.items():
            given[name] = group(**{each: given.pop(each) for each in names})
        try:
            run(**given)
        except KeyboardInterrupt as error:
            raise VaceError("interrupted; nothing was written") from error

    command.__doc__, command.__name__ = run.__doc__, run.__name__
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in shown}
    return command


def _parts(hint: Any) -> Sequence[Any]:
    return get_args(hint) if get_origin(hint) is Annotated else [hint]


def _options(group: Any) -> list[inspect.Parameter]:
    """The fields of a group that are settings, as parameters that typer reads."""
    hints = get_type_hints(group)
    typed: Mapping[Any, Any] = {Names: str | None, str | int: str}
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=Annotated[
                typed.get(hints[each.name], hints[each.name]), _option(each, group)
            ],
        )
        for each in fields(group)
        if "help" in each.metadata
    ]


def _option(each: Any, group: Any) -> Any:
    words = each.metadata
    flag = words["flag"] or f"--{each.name.replace('_', '-')}"
    assert each.default is not MISSING
    return typer.Option(
        *flag.split(","),
        help=words["help"],
        metavar=words["metavar"],
        rich_help_panel=words["panel"] or (_READING if issubclass(group, ReadOptions) else None),
    )
