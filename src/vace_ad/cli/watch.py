"""`vace watch`: score a live source and send alarms."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    from vace_ad.live.config import Config


def watch_command(
    config: Annotated[
        str, typer.Argument(help="Configuration file (TOML), or - for standard input.")
    ] = "watch.toml",
    kind: Annotated[
        str | None,
        typer.Argument(help="With --init: kind of source, such as prometheus or mqtt."),
    ] = None,
    model: Annotated[Path | None, typer.Option(help="With -: model file of `vace fit`.")] = None,
    state: Annotated[
        Path | None, typer.Option(help="With -: state file. By default the state is temporary.")
    ] = None,
    form: Annotated[
        str,
        typer.Option("--format", help="With -: csv, jsonl, or influx (line protocol, both ways)."),
    ] = "csv",
    step: Annotated[
        str | None, typer.Option(help="With -: time between rows. Required with influx.")
    ] = None,
    echo: Annotated[
        bool,
        typer.Option("--echo", help="With influx: also write each input line, for Telegraf."),
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write a commented configuration and exit.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be read, trained and sent, and exit.")
    ] = False,
    backtest: Annotated[
        str | None,
        typer.Option(help="Show the alarms of a past time span and exit, for example 30d."),
    ] = None,
    log: Annotated[
        str, typer.Option(help="Format of the log on standard error: text or json.")
    ] = "text",
) -> None:
    """Score a live source, raise alarms, and send them to sinks.

    Start with `vace watch plant.toml --init`, or `vace watch service.toml --init prometheus`, then
    `--dry-run`. SIGTERM stops the command; SIGHUP reloads the configuration.

    In a pipe: tail -f plant.csv | vace watch - --model plant.vace, or with line protocol in and out
    ... | vace watch - --model plant.vace --format influx --step 10s
    """
    if init:
        _write(config, kind)
        return
    if kind is not None:
        raise ConfigError(f"{kind!r} after the configuration file: a kind of source needs --init")
    from vace_ad.live.config import load_config
    from vace_ad.live.service import Service, plan

    _log(log)
    if config == "-":
        with tempfile.TemporaryDirectory() as folder:
            Service(_standard_input(model, state or Path(folder) / "state", form, step, echo)).run()
        return
    if model is not None or state is not None or step is not None or echo or form != "csv":
        raise ConfigError(
            "--model, --state, --format, --step and --echo go with -; a configuration has [model], "
            "[state], [source] and [align]"
        )
    loaded = load_config(Path(config))
    if dry_run:
        typer.echo("\n".join(plan(loaded)))
    elif backtest is not None:
        _backtest(loaded, backtest)
    else:
        Service(loaded).run()


def _write(config: str, kind: str | None) -> None:
    from vace_ad.live.config import template
    from vace_ad.live.plugins import kinds
    from vace_ad.live.settings import hint

    known = kinds("source")
    if kind is None and config in known:  # vace watch --init prometheus
        config, kind = "watch.toml", config
    kind = kind or "mqtt"
    if kind not in known:
        raise ConfigError(f"--init {kind}: must be one of {', '.join(known)}{hint(kind, known)}")
    path = Path(config)
    if path.exists():
        raise ConfigError(f"{path} is there already; remove it, or give another name")
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(template(kind))
    typer.echo(f"wrote {path}; edit it, then: vace watch {path} --dry-run")


def _standard_input(
    model: Path | None, state: Path, form: str, step: str | None, echo: bool
) -> Config:
    from vace_ad.live.config import make_config

    if model is None:
        raise ConfigError("standard input needs a model: vace watch - --model plant.vace")
    if form not in ("csv", "jsonl", "influx"):
        raise ConfigError(f"--format {form}: must be csv, jsonl or influx")
    if echo and form != "influx":
        raise ConfigError("--echo goes with --format influx")
    if form == "influx" and step is None:
        raise ConfigError(
            "--format influx needs --step, such as --step 10s: a row is made of the points of one "
            "step"
        )
    source: dict[str, Any] = {"kind": form, "path": "-"}
    return make_config(
        {
            "source": source | ({"echo": True} if echo else {}),
            "align": {} if step is None else {"step": step, "fill": "hold"},
            "model": {"file": str(model)},
            "state": {"path": str(state)},
            "alarms": {"silence_after": "off"},
            "sink": [{"kind": "influx" if form == "influx" else "stdout"}],
        }
    )


def _backtest(config: Config, words: str) -> None:
    from vace_ad.frames.timestamps import parse_duration
    from vace_ad.live.service import backtest
    from vace_ad.wording import plural

    span = parse_duration(words)
    alarms, watch = backtest(config, span)
    for alarm in alarms:
        typer.echo(f"{alarm['summary']}")
    counts = watch.status.counts
    days = span / (86_400 * 10**9)  # of less than one, a rate would say nothing
    rate = f" ({7 * len(alarms) / days:.1f} a week)" if days >= 1 else ""
    typer.echo(
        f"{plural(len(alarms), 'alarm')} in {words}{rate} of "
        f"{plural(len(watch.known), 'entity', 'entities')}, "
        f"{plural(counts['rows'], 'row')}; too late: {counts['late']:,}, "
        f"not readable: {counts['bad']:,}"
    )


class _Json(logging.Formatter):
    """Log lines as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _log(form: str) -> None:
    if form not in ("text", "json"):
        raise ConfigError(f"--log {form}: must be text or json")
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_Json() if form == "json" else plain)
    logger = logging.getLogger("vace_ad.live")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
