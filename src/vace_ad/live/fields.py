"""What a key of the configuration may hold: its type, its default, its words, its checks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vace_ad.errors import ConfigError
from vace_ad.frames.stamps import parse_duration

REQUIRED = object()


class Secret:
    """A value that no log, page or traceback shows; `reveal` gives it to who must send it."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


Check = Callable[[Any], Any]


@dataclass(frozen=True)
class Field:
    """One key: how a value is checked, what it is without one, and what it is for."""

    check: Check
    default: Any = REQUIRED
    words: str = ""  # the comment in the file that `--init` writes
    example: str = ""  # the TOML that `--init` shows, for keys without a default


def text(value: Any) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError('a string that is not empty, such as "pump"')
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A string, or a list of them."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(i, str) for i in items):
        raise ValueError("a string or a list of strings")
    return tuple(items)


def mapping(value: Any) -> dict[str, str]:
    """A table of strings by name."""
    good = isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())
    if not good or not value:
        raise ValueError('a table of strings by name, such as { cpu = "rate(cpu[1m])" }')
    return dict(value)


def boolean(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def duration(value: Any) -> int:
    """A duration in nanoseconds."""
    try:
        return parse_duration(value)
    except (ConfigError, AttributeError, TypeError):
        raise ValueError('a duration such as "500ms", "10s", "5min", "6h" or "14d"') from None


def pause(value: Any) -> int:
    """A duration in nanoseconds that may be zero."""
    return 0 if value in ("0", "0s", 0) else duration(value)


def switch_off(value: Any) -> int | None:
    """A duration in nanoseconds, or "off"."""
    if value in ("off", False):
        return None
    try:
        return duration(value)
    except ValueError as error:
        raise ValueError(f'{error}, or "off"') from None


def whole(low: int, high: int) -> Check:
    """A whole number within bounds."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return value

    return check


def choice(*allowed: str) -> Check:
    """One of a few words."""

    def check(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"one of {_quoted(allowed)}{hint(value, allowed)}")
        return str(value)

    return check


def url(*schemes: str) -> Check:
    """An address of one of these schemes, without a password in it."""

    def check(value: Any) -> str:
        wanted = f'an address such as "{schemes[0]}://127.0.0.1:1234"'
        if not isinstance(value, str):
            raise ValueError(wanted)
        try:
            parts = urlsplit(value)
            port = parts.port
        except ValueError:
            raise ValueError(wanted) from None
        if parts.scheme not in schemes or not parts.hostname or port == 0:
            raise ValueError(f"{wanted} (scheme {' or '.join(schemes)})")
        if parts.password is not None:
            raise ValueError(
                "an address without a password; put it in password_env or password_file"
            )
        return value

    return check


def shown_url(url: str) -> str:
    """An address as far as it may be shown: path and query of a hook are often a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def address(value: Any) -> tuple[str, int]:
    """A host and a port to listen on."""
    match = re.fullmatch(r"\[?([^\[\]]+?)\]?:(\d{1,5})", value) if isinstance(value, str) else None
    if match is None or int(match[2]) > 65_535:
        raise ValueError('host and port, such as "127.0.0.1:8490"')
    return match[1], int(match[2])


def path(value: Any) -> Path:
    """A path of a file."""
    return Path(text(value)).expanduser()


def secret(name: str, words: str) -> dict[str, Field]:
    """The two keys of a secret: where in the environment, or in which file, it lies."""
    return {
        f"{name}_env": Field(text, None, f"{words}: the environment variable that holds it"),
        f"{name}_file": Field(path, None, f"{words}: the file that holds it"),
    }


def read_secret(settings: Mapping[str, Any], name: str, where: str) -> Secret | None:
    """The secret that one of the two keys names, or None where neither is there."""
    variable, file = settings.get(f"{name}_env"), settings.get(f"{name}_file")
    if variable is not None and file is not None:
        raise ConfigError(f"{where}: {name}_env and {name}_file both came; give one of them")
    if variable is not None:
        if not os.environ.get(variable):
            raise ConfigError(
                f"{where}.{name}_env: the environment variable {variable} is not set or empty; "
                f"set it before starting, or use {name}_file"
            )
        return Secret(os.environ[variable])
    if file is not None:
        try:
            value = Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{where}.{name}_file: {file} cannot be read: {error}") from None
        if not value:
            raise ConfigError(f"{where}.{name}_file: {file} is empty")
        return Secret(value)
    return None


def check_table(
    given: Mapping[str, Any], fields: Mapping[str, Field], where: str
) -> dict[str, Any]:
    """The values of a table by its fields; every mistake says the key and what is allowed."""
    for key in given:
        if key not in fields:
            raise ConfigError(_unknown(key, fields, where))
    values = {}
    for key, field in fields.items():
        if key not in given:
            if field.default is REQUIRED:
                example = f", such as {key} = {field.example}" if field.example else ""
                raise ConfigError(f"{where}.{key} is missing: {field.words}{example}")
            values[key] = field.default
            continue
        try:
            values[key] = field.check(given[key])
        except ValueError as error:
            raise ConfigError(
                f"{where}.{key} = {_shown(key, given[key])}: must be {error}"
            ) from None
    return values


def _unknown(key: str, fields: Mapping[str, Field], where: str) -> str:
    stem = key.split("_")[0]
    if f"{key}_env" in fields:
        return (
            f"{where}.{key}: a secret does not stand in this file; name the environment variable "
            f"with {key}_env or a file with {key}_file"
        )
    close = hint(key, fields) or hint(stem, fields)
    return f"{where}.{key} is not a key here{close}; allowed: {', '.join(fields)}"


def hint(word: Any, words: Iterable[str]) -> str:
    """The closest of the words, as a question, where one is close."""
    close = get_close_matches(str(word), list(words), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _shown(key: str, value: Any) -> str:
    """A value as it came, short, and not where it may be a secret."""
    if any(word in key for word in ("password", "token", "secret")) or "@" in str(value):
        return "…"
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "…"
