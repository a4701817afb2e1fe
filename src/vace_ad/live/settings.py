"""Settings of a source, a sink or a section of the file: pydantic models that explain errors.

A model declares each key once, with `key`: type, default, meaning and example. The check, the file
that `vace watch --init` writes and the reference in the documentation are made from it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args
from urllib.parse import urlsplit

from vace_ad.alarms.budget import UNDERSTOOD, Budget
from vace_ad.errors import ConfigError, needs
from vace_ad.frames.time import duration_words
from vace_ad.frames.timestamps import parse_duration

with needs("pydantic", "live", "vace watch"):
    import pydantic
    from pydantic import BeforeValidator, SecretStr, ValidationInfo

_DURATION = 'a duration such as "500ms", "10s", "5min", "6h" or "14d"'
_TEXT = 'a string that is not empty, such as "pump"'


def key(
    default: Any, words: str, example: str = "", *, low: int | None = None, high: int | None = None
) -> Any:
    """A key of a section: its default (... if required), its meaning, an example in TOML, bounds.

    A duration's default is written as in the file: "5min".
    """
    return pydantic.Field(default, description=words, examples=[example], ge=low, le=high)


class Settings(pydantic.BaseModel):
    """Keys and values. A secret is declared as two keys, `NAME_env` and `NAME_file`."""

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_default=True,
        arbitrary_types_allowed=True,
    )  # fmt: skip
    _secrets: dict[str, SecretStr] = pydantic.PrivateAttr(default_factory=dict)

    @pydantic.model_validator(mode="after")
    def _read_secrets(self) -> Settings:
        for name in type(self).model_fields:
            if name.endswith("_env"):
                stem = name.removesuffix("_env")
                value = _secret(stem, getattr(self, name), getattr(self, f"{stem}_file"))
                if value is not None:
                    self._secrets[stem] = SecretStr(value)
        return self

    def secret(self, name: str) -> str | None:
        """The value of a secret, which no log, page or traceback shows; None if it is not set."""
        found = self._secrets.get(name)
        return None if found is None else found.get_secret_value()


S = TypeVar("S", bound=Settings)


def read_settings(
    kind: type[S], given: Mapping[str, Any], where: str, folder: Path | None = None
) -> S:
    """Check the keys of a section; paths are relative to `folder`.

    An error names the key, the value and what is expected.
    """
    try:
        return kind.model_validate(dict(given), context={"folder": folder})
    except pydantic.ValidationError as error:
        found = error.errors()
        unknown = (one for one in found if one["type"] == "extra_forbidden")
        first: Mapping[str, Any] = next(unknown, found[0])
        raise ConfigError(f"{where}{_sentence(kind, first)}") from None


class Key(NamedTuple):
    """A key as the file and the documentation show it."""

    name: str
    words: str
    required: bool
    default: str  # in TOML; "" for none
    example: str


def keys_of(kind: type[Settings]) -> Iterator[Key]:
    """The keys of a section: the required ones, then the others, as they are declared."""
    fields = sorted(kind.model_fields.items(), key=lambda item: not item[1].is_required())
    for name, field in fields:
        none = field.is_required() or field.default in (None, "")
        default = "" if none else json.dumps(field.default, ensure_ascii=False)  # as in TOML
        example = (field.examples or [""])[0]
        yield Key(name, field.description or "", field.is_required(), default, example)


def shown(settings: Settings) -> str:
    """Settings in words, without those that are secret or not set."""
    found = []
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if value in (None, ()) or any(word in name for word in ("password", "token")):
            continue
        if any(getattr(one, "func", None) in _DURATIONS for one in field.metadata):
            value = duration_words(value) if value else "0 s"
        elif isinstance(value, Mapping | tuple):
            value = ", ".join(map(str, value))
        found.append(f"{name} {host_of(value) if name == 'url' else value}")
    return ", ".join(found)


# ------------------------------------------------------------------------- types of values


def _duration(value: Any, info: ValidationInfo) -> int:
    if info.context is None and type(value) is int:
        return value  # from Python: nanoseconds
    try:
        return parse_duration(value)
    except (ConfigError, AttributeError, TypeError):
        raise ValueError(_DURATION) from None


def _duration_or_zero(value: Any, info: ValidationInfo) -> int:
    return 0 if value in ("0", "0s", 0) else _duration(value, info)


def _duration_or_off(value: Any, info: ValidationInfo) -> int | None:
    if value in ("off", False, None):
        return None
    try:
        return _duration(value, info)
    except ValueError as error:
        raise ValueError(f'{error}, or "off"') from None


def read_budget(value: Any) -> Budget:
    """A budget of false alarms, in words."""
    try:
        return Budget.of(str(value))
    except ConfigError:
        raise ValueError(UNDERSTOOD) from None


def _texts(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if (
        not isinstance(items, list | tuple)
        or not items
        or not all(isinstance(i, str) for i in items)
    ):
        raise ValueError("a string or a list of strings")
    return tuple(items)


def _table(value: Any) -> dict[str, str]:
    good = isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())
    if not good or not value:
        raise ValueError('a table of strings by name, such as { cpu = "rate(cpu[1m])" }')
    return dict(value)


def _path(value: Any, info: ValidationInfo) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError(_TEXT)
    folder = (info.context or {}).get("folder")
    found = Path(value).expanduser()
    return found if folder is None or str(value) == "-" else folder / found


def _address(value: Any) -> tuple[str, int]:
    match = re.fullmatch(r"\[?([^\[\]]+?)\]?:(\d{1,5})", value) if isinstance(value, str) else None
    if match is None or int(match[2]) > 65_535:
        raise ValueError('host and port, such as "127.0.0.1:8490"')
    return match[1], int(match[2])


def url(*schemes: str) -> BeforeValidator:
    """A validator of URLs of these schemes, without a password in them."""

    def check(value: Any) -> str:
        wanted = f'an address such as "{schemes[0]}://127.0.0.1:1234"'
        try:
            parts = urlsplit(value if isinstance(value, str) else "")
            port = parts.port
        except ValueError:
            raise ValueError(wanted) from None
        if parts.scheme not in schemes or not parts.hostname or port == 0:
            raise ValueError(f"{wanted} (scheme {' or '.join(schemes)})")
        if parts.password is not None:
            raise ValueError(
                "an address without a password; put it in password_env or password_file"
            )
        return str(value)

    return BeforeValidator(check)


_DURATIONS = (_duration, _duration_or_zero, _duration_or_off)
Text = Annotated[str, pydantic.StringConstraints(min_length=1)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]  # one string, or a list
Table = Annotated[dict[str, str], BeforeValidator(_table)]
Duration = Annotated[int, BeforeValidator(_duration)]  # nanoseconds
DurationOrZero = Annotated[int, BeforeValidator(_duration_or_zero)]
DurationOrOff = Annotated[int | None, BeforeValidator(_duration_or_off)]
BudgetWords = Annotated[Budget, BeforeValidator(read_budget)]
FilePath = Annotated[Path, BeforeValidator(_path)]
Address = Annotated[tuple[str, int], BeforeValidator(_address)]
HttpUrl = Annotated[str, url("http", "https")]


class UserSettings(Settings):
    """Keys of a user, which several protocols share."""

    username: Text | None = key(None, "user name, if the server asks for one", '"watch"')
    password_env: Text | None = key(None, "its password: environment variable", '"VARIABLE"')
    password_file: FilePath | None = key(None, "its password: file that holds it", '"…"')


class LoginSettings(UserSettings):
    """Keys of a user and of TLS."""

    ca_file: FilePath | None = key(
        None, "TLS: certificates to trust, if not the system's", '"ca.pem"'
    )


def host_of(url: str) -> str:
    """Scheme, host and port of a URL; its path and query are often a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host's name or address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


# ------------------------------------------------------------------------------ error texts


def hint(word: Any, words: Iterable[str]) -> str:
    """The closest of the words, as a question, where one is close."""
    close = get_close_matches(str(word), list(words), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _sentence(kind: type[Settings], error: Mapping[str, Any]) -> str:
    if not error["loc"]:  # of a secret
        return f".{error['ctx']['error']}"
    name, fields = str(error["loc"][0]), kind.model_fields
    if error["type"] == "extra_forbidden":
        if f"{name}_env" in fields:
            return (
                f".{name}: a secret does not stand in this file; name the environment variable "
                f"with {name}_env or a file with {name}_file"
            )
        close = hint(name, fields) or hint(name.split("_")[0], fields)
        return f".{name} is not a key here{close}; allowed: {', '.join(fields)}"
    field = fields[name]
    if error["type"] == "missing":
        example = (field.examples or [""])[0]
        such_as = f", such as {name} = {example}" if example else ""
        return f".{name} is missing: {field.description}{such_as}"
    return f".{name} = {_shown(name, error['input'])}: must be {_expected(field, error)}"


def _expected(field: Any, error: Mapping[str, Any]) -> str:
    """What a key takes, in words."""
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] == "literal_error":
        words = get_args(field.annotation)
        quoted = ", ".join(f'"{word}"' for word in words)
        return f"one of {quoted}{hint(error['input'], words)}"
    if error["type"].startswith("string"):
        return _TEXT
    if error["type"].startswith("bool"):
        return "true or false"
    low, high = (
        next((getattr(one, side) for one in field.metadata if hasattr(one, side)), "any")
        for side in ("ge", "le")
    )
    return f"a whole number from {low} to {high}"


def _shown(name: str, value: Any) -> str:
    """A value as it came, short, and not where it may be a secret."""
    if any(word in name for word in ("password", "token", "secret")) or "@" in str(value):
        return "…"
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "…"


def _secret(name: str, variable: str | None, file: Path | None) -> str | None:
    if variable is not None and file is not None:
        raise ValueError(f"{name}_env and {name}_file cannot be combined; give one of them")
    if variable is not None:
        if not os.environ.get(variable):
            raise ValueError(
                f"{name}_env: the environment variable {variable} is not set or empty; set it "
                f"before starting, or use {name}_file"
            )
        return os.environ[variable]
    if file is None:
        return None
    try:
        value = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}_file: {file} cannot be read: {error}") from None
    if not value:
        raise ValueError(f"{name}_file: {file} is empty")
    return value
