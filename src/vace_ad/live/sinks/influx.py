"""Scores and alarms on standard output as Influx line protocol, for Telegraf and other pipes."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from math import isfinite

from vace_ad.live.records import read_time
from vace_ad.live.settings import Settings, Text, key
from vace_ad.live.sinks import Body, RowSink, Scored


class InfluxSettings(Settings):
    """Keys of the sink."""

    entity: Text = key("host", "the tag that names the entity")
    scores: bool = key(True, "whether every scored row is written")


class InfluxSink(RowSink[InfluxSettings]):
    """A line `vace` for every scored row, and a line `vace_alarm` for each message of an alarm."""

    SETTINGS = InfluxSettings

    def __init__(self, settings: InfluxSettings) -> None:
        super().__init__(settings)
        self._lines: list[str] = []
        self._lock = threading.Lock()

    def rows(self, scored: Scored) -> None:
        """Keep lines until the next flush."""
        if not self.settings.scores:
            return
        head = f"vace,{escaped(self.settings.entity)}={escaped(scored.entity)}"
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
        tags = {self.settings.entity: message["entity"] or "source", "kind": message["kind"]}
        inside = "".join(f",{escaped(tag)}={escaped(value)}" for tag, value in tags.items())
        names = ", ".join(one["name"] for one in message["channels"]) or message["channel"]
        texts = {"what": message["what"], "alarm": message["alarm"], "channels": names or "",
                 "summary": message["summary"]}  # fmt: skip
        cells = [f"{name}={_quoted(text)}" for name, text in texts.items()]
        cells += [
            f"{name}={float(message[name])!r}"
            for name in ("severity", "score")
            if message[name] is not None
        ]
        open_now = int(message["what"] != "resolve")
        return f"vace_alarm{inside} open={open_now}i,{','.join(cells)} {read_time(message['time'])}"

    def _write(self, lines: Sequence[str]) -> None:
        if lines:
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()


def escaped(text: str) -> str:
    """A tag's key or value, in which commas, equals signs and spaces are escaped."""
    return re.sub(r"([,= \\])", r"\\\1", text)


def _quoted(text: str) -> str:
    inside = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inside}"'
