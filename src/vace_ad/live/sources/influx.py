"""Influx line protocol on standard input or in a growing file, as Telegraf's execd writes it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.records import Record, from_influx
from vace_ad.live.sources.files import TextSource


class InfluxSource(TextSource):
    """One point a line."""

    FIELDS: Mapping[str, Field] = {
        **{key: one for key, one in TextSource.FIELDS.items() if key not in ("channel", "value")},
        "entity": Field(f.text, "host", "the tag that names the entity"),
        "echo": Field(f.boolean, False, "write each line to standard output too, for a processor"),
    }

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__({"channel": "channel", "value": "value", **settings})
        self._echo = settings["echo"]

    def _records(self, line: str) -> list[Record]:
        if self._echo and line.strip():
            sys.stdout.write(f"{line.rstrip()}\n")
            sys.stdout.flush()
        record = from_influx(line, self._names, time.time_ns())
        return [] if record is None else [record]
