"""Whom a message speaks to: an option on the command line, a keyword in Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ON_COMMAND_LINE: ContextVar[bool] = ContextVar("on_command_line", default=False)


@contextmanager
def command_line(on: bool = True) -> Iterator[None]:
    """Name fixes as options of the command line while this lasts."""
    token = _ON_COMMAND_LINE.set(on)
    try:
        yield
    finally:
        _ON_COMMAND_LINE.reset(token)


def is_command_line() -> bool:
    """Whether messages speak to somebody at the command line."""
    return _ON_COMMAND_LINE.get()


def option(name: str, value: object = None) -> str:
    """A setting as the caller writes it: `--time-zone UTC`, or `time_zone='UTC'` in Python.

    With the value True it is a switch; without a value only its name is said.
    """
    if is_command_line():
        flag = f"--{name.replace('_', '-')}"
        return flag if value is None or value is True else f"{flag} {value}"
    return name if value is None else f"{name}={value!r}"
