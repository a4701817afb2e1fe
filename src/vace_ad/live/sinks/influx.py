"""Scores and alarms on standard output as Influx line protocol, for Telegraf and other pipes."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.records import read_time
from vace_ad.live.sinks import Body, Scored


class InfluxSink:
    """A line `vace` for every scored row, and a line `vace_alarm` for all news of an alarm."""

    FIELDS: Mapping[str, Field] = {
        "entity": Field(f.text, "host", "the tag that names the entity"),
        "scores": Field(f.boolean, True, "whether every scored row is told"),
    }
    repeat: int | None = None
    repeat_acknowledged = False
    bands = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._tag, self._scores = settings["entity"], settings["scores"]
        self._lines: list[str] = []
        self._lock = threading.Lock()

    def rows(self, scored: Scored) -> None:
        """Keep lines until the next flush."""
        if not self._scores:
            return
        head = f"vace,{escaped(self._tag)}={escaped(scored.entity)}"
        lines = [
            f"{head} {f'score={score!r},' if isfinite(score) else ''}alarm={int(alarm)}i {at}"
            for at, score, alarm in zip(scored.times, scored.scores, scored.alarming, strict=True)
        ]
        with self._lock:
            self._lines += lines

    def flush(self) -> bool:
        """Write the lines of scored rows."""
        with self._lock:
            lines, self._lines = self._lines, []
        self._write(lines)
        return bool(lines)

    def send(self, messages: Sequence[Body]) -> None:
        """Write a line for each message."""
        self._write([self._line(message) for message in messages])

    def _line(self, message: Body) -> str:
        tags = {self._tag: message["entity"] or "source", "kind": message["kind"]}
        inside = "".join(f",{escaped(key)}={escaped(value)}" for key, value in tags.items())
        names = ", ".join(one["name"] for one in message["channels"]) or message["channel"]
        texts = {"what": message["what"], "alarm": message["alarm"], "channels": names or "",
                 "summary": message["summary"]}  # fmt: skip
        cells = [f"{key}={_quoted(value)}" for key, value in texts.items()]
        cells += [
            f"{key}={float(message[key])!r}"
            for key in ("severity", "score")
            if message[key] is not None
        ]
        open_now = int(message["what"] != "resolve")
        return f"vace_alarm{inside} open={open_now}i,{','.join(cells)} {read_time(message['time'])}"

    def _write(self, lines: Sequence[str]) -> None:
        if lines:
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()

    def close(self) -> None:
        """Standard output stays open."""


def escaped(text: str) -> str:
    """A tag's key or value, in which commas, equals signs and spaces are escaped."""
    return re.sub(r"([,= \\])", r"\\\1", text)


def _quoted(text: str) -> str:
    inside = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inside}"'
