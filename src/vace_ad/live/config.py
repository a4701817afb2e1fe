"""The file that `vace watch` reads: TOML; every key is known, every error names its place."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from vace_ad.alarms.budget import Budget
from vace_ad.errors import ConfigError
from vace_ad.live.plugins import kinds
from vace_ad.live.sections import (
    AlarmSettings,
    Align,
    DeploySettings,
    ModelSettings,
    NetworkLimits,
    RetrainSettings,
    Serving,
    State,
)
from vace_ad.live.settings import (
    Settings,
    hint,
    is_loopback,
    keys_of,
    read_settings,
)


@dataclass(frozen=True)
class PluginSection:
    """A source or a sink: its kind and its checked settings."""

    kind: str
    settings: Any
    name: str = ""  # of a sink, unique; identifies its messages


@dataclass(frozen=True)
class Config:
    """The whole configuration of a watch."""

    source: PluginSection
    align: Align
    model: ModelSettings
    alarms: AlarmSettings
    deploys: DeploySettings
    retrain: RetrainSettings
    state: State
    server: Serving
    limits: NetworkLimits
    sinks: tuple[PluginSection, ...] = ()
    path: Path | None = None

    @property
    def budget(self) -> Budget:
        """The budget of false alarms."""
        return self.alarms.budget or Budget()

    @property
    def link(self) -> str | None:
        """The page's address for messages."""
        if self.server.link:
            return self.server.link.rstrip("/")
        if self.server.address is None:
            return None
        host, port = self.server.address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


# The sections with fixed keys, as `Config` declares them.
SECTIONS: dict[str, type[Settings]] = {
    name: kind
    for name, kind in get_type_hints(Config).items()
    if isinstance(kind, type) and issubclass(kind, Settings)
}


def load_config(file: Path) -> Config:
    """Read and check a file; an error is a ConfigError that begins with the file's name."""
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such file; `vace watch --init {file}` writes one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is not TOML: {error}") from None
    try:
        return make_config(data, file)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None


def make_config(data: Mapping[str, Any], file: Path | None = None) -> Config:
    """Check the tables of a file; paths are relative to it."""
    known = ("source", "sink", *SECTIONS)
    for name in data:
        if name not in known:
            raise ConfigError(
                f"[{name}] is not a section{hint(name, known)}; allowed: {', '.join(known)}"
            )
        if name != "sink" and not isinstance(data[name], Mapping):
            raise ConfigError(f"{name} must be a section: [{name}]")
    for name in ("source", "model", "state"):
        if name not in data:
            raise ConfigError(f"the section [{name}] is missing")
    folder = None if file is None else file.parent
    sections: dict[str, Any] = {
        name: read_settings(kind, data.get(name, {}), name, folder)
        for name, kind in SECTIONS.items()
    }
    source = _part(data["source"], "source", "source", folder)
    sinks = _sinks(data.get("sink", []), folder)
    config = Config(source=source, sinks=sinks, path=file, **sections)
    _check(config)
    return config


def _part(given: Any, group: str, where: str, folder: Path | None) -> PluginSection:
    known = kinds(group)
    if not isinstance(given, Mapping) or "kind" not in given:
        raise ConfigError(f"{where}.kind is missing: one of {', '.join(known)}")
    kind = given["kind"]
    if kind not in known:
        raise ConfigError(
            f"{where}.kind = {kind!r}: must be one of {', '.join(known)}{hint(kind, known)}"
        )
    rest = {name: value for name, value in given.items() if name != "kind"}
    return PluginSection(str(kind), read_settings(known[kind].load().SETTINGS, rest, where, folder))


def _sinks(given: Any, folder: Path | None) -> tuple[PluginSection, ...]:
    if not isinstance(given, list):
        raise ConfigError("sink must be a list of tables: [[sink]]")
    seen, parts = Counter[str](), []
    for i, one in enumerate(given, start=1):
        part = _part(one, "sink", f"sink[{i}]", folder)
        seen[part.kind] += 1
        n = seen[part.kind]
        parts.append(replace(part, name=part.kind if n == 1 else f"{part.kind}-{n}"))
    return tuple(parts)


def _check(config: Config) -> None:
    """Settings that depend on each other."""
    kind, where = config.source.kind, config.server.address
    source = kinds("source")[kind].load()
    if (config.model.file is None) == (config.model.learn is None):
        raise ConfigError('[model] needs one of file = "pump.vace" or learn = "14d"')
    if config.model.learn is None and (given := list(config.model.learned)):
        raise ConfigError(
            f"model.{given[0]} goes with model.learn; the model file has its own: set it with "
            "`vace fit`"
        )
    if config.retrain.every is None and config.retrain.over is not None:
        raise ConfigError('retrain.over needs retrain.every, such as every = "7d"')
    shared = config.model.file is not None and "{entity}" not in str(config.model.file)
    if config.retrain.every is not None and shared:
        raise ConfigError(
            "retrain.every trains a model on the rows of each entity, and model.file is one for "
            'all; use learn = "14d", or "{entity}" in the name of the file'
        )
    if config.align.fill == "hold" and config.align.step is None:
        raise ConfigError('align.fill = "hold" needs align.step, such as step = "10s"')
    if source.needs_step and config.align.step is None:
        raise ConfigError(
            f'source.kind = "{kind}" brings single readings; [align] step = "10s" makes rows of '
            "them"
        )
    if source.needs_server and where is None:
        raise ConfigError(f'source.kind = "{kind}" needs [server] address = "127.0.0.1:8490"')
    if where is not None and not is_loopback(where[0]) and config.server.secret("token") is None:
        raise ConfigError(
            f"server.address = {where[0]}:{where[1]} is open to other machines: that needs a "
            "token; set token_env or token_file, or listen on 127.0.0.1"
        )


# ----------------------------------------------------------------------- vace watch --init

_COMMENTS = {
    "align": "  # makes rows of single readings",
    "model": "  # one of file and learn",
    "deploys": "  # also POST /api/deploy",
    "server": "  # page, metrics, HTTP push; loopback needs no token",
    "limits": "  # names come from the network and may be hostile",
}
_VALUES = {
    "model": {"file": '"pump.vace"'},
    "alarms": {"budget": '"1 per week"', "resolve_after": '"10min"'},
    "server": {"address": '"127.0.0.1:8490"'},
}
_SINGLE = {"align": {"step": '"10s"', "lateness": '"30s"', "fill": '"hold"'}}  # single readings


def template(kind: str = "mqtt") -> str:
    """A commented file with every section, for `vace watch --init`."""
    source = kinds("source")[kind].load()
    values = {**_VALUES, **(_SINGLE if source.needs_step else {}), **source.TEMPLATE}
    lines = [
        "# Configuration of `vace watch`. Check it: vace watch FILE --dry-run",
        "",
        f"[source]  # kind: {', '.join(kinds('source'))}",
        f'kind = "{kind}"',
        *_lines(source.SETTINGS, values.get("source", {}), skip=source.EXAMPLES),
    ]
    for name, examples in source.EXAMPLES.items():
        lines += ["", f"[source.{name}]", *_examples(examples)]
    for name, section in SECTIONS.items():
        if name == "state":
            lines += ["", f"[[sink]]  # one or more; kind: {', '.join(kinds('sink'))}"]
            lines += ['kind = "stdout"', *_lines(kinds("sink")["stdout"].load().SETTINGS, {})]
        lines += ["", f"[{name}]{_COMMENTS.get(name, '')}"]
        lines += _lines(section, values.get(name, {}))
    return "\n".join(lines) + "\n"


def _lines(
    section: type[Settings], values: Mapping[str, str], skip: Mapping[str, Any] | None = None
) -> list[str]:
    """A line for each key: set where it has a value or needs one, else as a comment."""
    lines = []
    for one in keys_of(section):
        if one.name in (skip or {}):
            continue
        value = values.get(one.name) or (one.example if one.required else "")
        commented = f"# {one.name} = {one.default or one.example}"
        lines.append(f"{f'{one.name} = {value}' if value else commented:<34} # {one.words}")
    return lines


def _examples(examples: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Ready-made values of a table; all but the first set are comments."""
    lines = []
    for i, (words, values) in enumerate(examples.items()):
        front = "# " if i else ""
        lines += [f"# {words}", *(f"{front}{name} = '{value}'" for name, value in values.items())]
    return lines
