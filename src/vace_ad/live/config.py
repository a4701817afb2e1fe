"""The file that `vace watch` reads: TOML, every key known, every mistake said with its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from vace_ad.alarms.budget import UNDERSTOOD, Budget
from vace_ad.errors import ConfigError
from vace_ad.live import fields as f
from vace_ad.live.fields import REQUIRED, Field, Secret, check_table, read_secret
from vace_ad.live.plugins import kinds

SECOND, MINUTE, DAY = 10**9, 60 * 10**9, 86_400 * 10**9


def budget(value: Any) -> Budget:
    """So many alarms, in the words that every door takes."""
    try:
        return Budget.of(str(value))
    except ConfigError:
        raise ValueError(UNDERSTOOD) from None


ALIGN = {
    "step": Field(
        f.duration, None, "time between rows; without it rows are taken as they come", '"10s"'
    ),
    "lateness": Field(f.pause, 0, "readings may come so late and still be put in place"),
    "fill": Field(
        f.choice("hold", "none"), "none", 'a missing cell: "hold" the last value, or "none"'
    ),
    "hold": Field(f.duration, 5 * MINUTE, "the longest time for which a value is held"),
    "combine": Field(
        f.choice("mean", "last"), "mean", "several readings of a channel within one step"
    ),
    "future": Field(f.duration, 5 * MINUTE, "readings further ahead of the clock are set aside"),
    "gap": Field(
        f.whole(1, 1_000_000), 1000, "a longer gap, in rows, is a jump in time, not empty rows"
    ),
}
MODEL = {
    "file": Field(
        f.path, None, 'a model of `vace fit`; "{entity}" in the name gives one each', '"pump.vace"'
    ),
    "learn": Field(f.duration, None, "or: learn each entity from its first rows, so long", '"14d"'),
    "random_state": Field(f.whole(0, 2**31 - 1), 0, "the random seed of what is learned"),
    "off": Field(f.text, None, "with learn: the machine stands still", '"pump_speed < 5"'),
    "run_up": Field(f.whole(0, 100_000), 5, "with learn: rows after that which are off too"),
    "run_down": Field(f.whole(0, 4_096), 5, "with learn: rows before that without alarms"),
    "context": Field(f.texts, (), "with learn: explain others, never blamed", '["ambient"]'),
    "watch": Field(f.texts, (), "with learn: the only channels that alarm", '["flow"]'),
    "maintenance": Field(
        f.path, None, "planned windows: CSV of start,end or iCalendar", '"windows.csv"'
    ),
}
LEARNED = ("off", "run_up", "run_down", "context", "watch")  # settings of what is learned here
ALARMS = {
    "budget": Field(
        budget, None, "false alarms that an entity may raise; by default this", '"1 per week"'
    ),
    "resolve_after": Field(
        f.pause, 10 * MINUTE, "an alarm resolves when all was quiet for so long"
    ),
    "update_every": Field(f.duration, 5 * MINUTE, "news of an open alarm at most so often"),
    "group": Field(
        f.pause, MINUTE, 'alarms that open within so long are one incident; "0s" for none'
    ),
    "silence_after": Field(
        f.switch_off, 10 * MINUTE, 'no data for so long is an alarm of its own; or "off"'
    ),
}
STATE = {
    "path": Field(
        f.path, REQUIRED, "where positions, states and unsent messages are kept", '"plant.state"'
    ),
    "checkpoint": Field(f.duration, SECOND, "how often they are written; alarms at once"),
    "snapshot_rows": Field(
        f.whole(1, 1_000_000), 256, "rows of an entity between snapshots of its stream"
    ),
    "active": Field(f.whole(1, 1_000_000), 20_000, "entities in memory at most"),
    "idle": Field(f.duration, 60 * MINUTE, "an entity without readings for so long goes to disk"),
    "outbox": Field(f.whole(10, 10_000_000), 10_000, "unsent messages kept for each sink"),
    "history": Field(f.duration, 90 * DAY, "resolved alarms are kept so long"),
}
SERVER = {
    "address": Field(
        f.address, None, "where page, metrics and HTTP push listen", '"127.0.0.1:8490"'
    ),
    **f.secret("token", "the token that other addresses than loopback need"),
    "link": Field(f.url("http", "https"), None, "the page's address in messages, if it is another"),
    "body": Field(f.whole(1000, 10**9), 8_000_000, "bytes of a request at most"),
    "connections": Field(f.whole(1, 100_000), 100, "open connections at most"),
}
LIMITS = {
    "entities": Field(
        f.whole(1, 10_000_000), 20_000, "readings of further entities are counted and dropped"
    ),
    "channels": Field(f.whole(1, 100_000), 1000, "channels of an entity, likewise"),
}
SECTIONS = {
    "align": ALIGN,
    "model": MODEL,
    "alarms": ALARMS,
    "state": STATE,
    "server": SERVER,
    "limits": LIMITS,
}
_NEEDED = ("source", "model", "state")
_READINGS = ("mqtt", "sparkplug")  # sources of single readings, which need a step


@dataclass(frozen=True)
class Part:
    """A source or a sink: its kind and its checked settings."""

    kind: str
    settings: dict[str, Any]
    name: str = ""  # of a sink, unique; keys its messages


@dataclass(frozen=True)
class Config:
    """Everything that a watch needs to know."""

    source: Part
    align: dict[str, Any]
    model: dict[str, Any]
    alarms: dict[str, Any]
    state: dict[str, Any]
    server: dict[str, Any]
    limits: dict[str, Any]
    sinks: tuple[Part, ...] = ()
    path: Path | None = None
    token: Secret | None = field(default=None, repr=False)

    @property
    def budget(self) -> Budget:
        """The budget of false alarms."""
        return self.alarms["budget"] or Budget()

    @property
    def link(self) -> str | None:
        """The page's address for messages."""
        if self.server["link"]:
            return str(self.server["link"]).rstrip("/")
        if self.server["address"] is None:
            return None
        host, port = self.server["address"]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def load_config(file: Path) -> Config:
    """Read and check a file; a mistake is a ConfigError that begins with the file's name."""
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
    known = {"source": {}, "sink": {}, **SECTIONS}
    for name in data:
        if name not in known:
            raise ConfigError(
                f"[{name}] is not a section{f.hint(name, known)}; allowed: {', '.join(known)}"
            )
    for name in _NEEDED:
        if name not in data:
            raise ConfigError(f"the section [{name}] is missing")
    for name in known:
        if name != "sink" and not isinstance(data.get(name, {}), Mapping):
            raise ConfigError(f"{name} must be a section: [{name}]")
    checked = {
        name: check_table(data.get(name, {}), table, name) for name, table in SECTIONS.items()
    }
    if (checked["model"]["file"] is None) == (checked["model"]["learn"] is None):
        raise ConfigError('[model] needs one of file = "pump.vace" or learn = "14d"')
    given = [key for key in LEARNED if checked["model"][key] != MODEL[key].default]
    if given and checked["model"]["learn"] is None:
        raise ConfigError(
            f"model.{given[0]} goes with model.learn; the model file has its own: set it with "
            "`vace fit`"
        )
    if checked["align"]["fill"] == "hold" and checked["align"]["step"] is None:
        raise ConfigError('align.fill = "hold" needs align.step, such as step = "10s"')
    kind = data["source"].get("kind")
    if kind in _READINGS and checked["align"]["step"] is None:
        raise ConfigError(
            f'source.kind = "{kind}" brings single readings; [align] step = "10s" makes rows of '
            "them"
        )
    config = Config(
        source=_part(data["source"], "source", "source"),
        sinks=_sinks(data.get("sink", [])),
        path=file,
        token=read_secret(checked["server"], "token", "server"),
        **checked,
    )
    _check_server(config)
    return _relative(config, file)


def _part(given: Any, group: str, where: str) -> Part:
    if not isinstance(given, Mapping) or "kind" not in given:
        raise ConfigError(f"{where}.kind is missing: one of {', '.join(kinds(group))}")
    known = kinds(group)
    kind = given["kind"]
    if kind not in known:
        raise ConfigError(
            f"{where}.kind = {kind!r}: must be one of {', '.join(known)}{f.hint(kind, known)}"
        )
    rest = {key: value for key, value in given.items() if key != "kind"}
    settings = check_table(rest, known[kind].load().FIELDS, where)
    for key in [key for key in settings if key.endswith("_env")]:
        settings[key.removesuffix("_env")] = read_secret(settings, key.removesuffix("_env"), where)
    return Part(str(kind), settings)


def _sinks(given: Any) -> tuple[Part, ...]:
    if not isinstance(given, list):
        raise ConfigError("sink must be a list of tables: [[sink]]")
    parts: list[Part] = []
    for i, one in enumerate(given, start=1):
        part = _part(one, "sink", f"sink[{i}]")
        same = sum(other.kind == part.kind for other in parts)
        parts.append(
            Part(part.kind, part.settings, f"{part.kind}-{same + 1}" if same else part.kind)
        )
    return tuple(parts)


def loopback(host: str) -> bool:
    """Whether only this machine reaches a host's name or address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _check_server(config: Config) -> None:
    where = config.server["address"]
    if where is None and config.source.kind == "http":
        raise ConfigError('source.kind = "http" needs [server] address = "127.0.0.1:8490"')
    if where is not None and not loopback(where[0]) and config.token is None:
        raise ConfigError(
            f"server.address = {where[0]}:{where[1]} is open to other machines: that needs a "
            "token; set token_env or token_file, or listen on 127.0.0.1"
        )


def _relative(config: Config, file: Path | None) -> Config:
    """Paths in the file are meant from the folder where it lies."""
    if file is not None:
        for table in (config.source.settings, config.model, config.state):
            for key, value in table.items():
                if isinstance(value, Path) and str(value) != "-":
                    table[key] = file.parent / value
    return config


_SINGLE = {"align": {"step": '"10s"', "lateness": '"30s"', "fill": '"hold"'}}  # single readings


def template(kind: str = "mqtt") -> str:
    """A commented file with every section, for `vace watch --init`."""
    source = kinds("source")[kind].load()
    sink = kinds("sink")["stdout"].load().FIELDS
    given = getattr(source, "TEMPLATE", _SINGLE if kind in _READINGS else {})
    sets = getattr(source, "SETS", {})
    fields = {key: one for key, one in source.FIELDS.items() if key not in sets}
    model = given.get("model", {"file": '"pump.vace"'})
    lines = [
        "# What `vace watch` reads, learns, raises and sends. Check it: vace watch FILE --dry-run",
        "",
        f"[source]  # kind: {', '.join(kinds('source'))}",
        f'kind = "{kind}"',
        *_keys(fields, given.get("source")),
        *(line for key, by_words in sets.items() for line in _tables(f"source.{key}", by_words)),
        "",
        "[align]  # rows out of single readings",
        *_keys(ALIGN, given.get("align")),
        "",
        "[model]  # one of file and learn",
        *_keys(MODEL, model),
        "",
        "[alarms]",
        *_keys(ALARMS, {"budget": '"1 per week"', "resolve_after": '"10min"'}),
        "",
        f"[[sink]]  # as many as you like; kind: {', '.join(kinds('sink'))}",
        'kind = "stdout"',
        *_keys(sink),
        "",
        "[state]",
        *_keys(STATE),
        "",
        "[server]  # page, metrics, HTTP push; loopback needs no token",
        *_keys(SERVER, {"address": '"127.0.0.1:8490"'}),
        "",
        "[limits]  # names come from the wire and may be hostile",
        *_keys(LIMITS),
    ]
    return "\n".join(lines) + "\n"


def _tables(name: str, by_words: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A table with ready-made values; of several, the first one counts."""
    lines = ["", f"[{name}]"]
    for i, (words, values) in enumerate(by_words.items()):
        front = "# " if i else ""
        lines += [f"# {words}", *(f"{front}{key} = '{value}'" for key, value in values.items())]
    return lines


def _keys(table: Mapping[str, Field], given: Mapping[str, str] | None = None) -> list[str]:
    lines = []
    for key, one in table.items():
        value = (given or {}).get(key)
        if value is None and one.default is REQUIRED:
            value = one.example
        shown = f"{key} = {value}" if value else f"# {key} = {_toml(key, one)}"
        lines.append(f"{shown:<34} # {one.words}")
    return lines


def _toml(key: str, one: Field) -> str:
    value = one.default
    if value is None or value == ():
        return one.example or ('"VARIABLE"' if key.endswith("_env") else '"…"')
    if isinstance(value, bool):
        return str(value).lower()
    if one.check in (f.duration, f.pause, f.switch_off):
        units = ((DAY, "d"), (MINUTE, "min"), (SECOND, "s"), (10**6, "ms"))
        return next(
            (f'"{value // n}{unit}"' for n, unit in units if value and value % n == 0), '"0s"'
        )
    return f'"{value}"' if isinstance(value, str | Path) else str(value)
