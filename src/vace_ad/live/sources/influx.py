"""Influx line protocol on standard input or in a growing file, as Telegraf's execd writes it."""

from __future__ import annotations

import sys
import time

from vace_ad.live.records import Names, Record, from_influx
from vace_ad.live.settings import Text, key
from vace_ad.live.sources.files import LineSettings, LineSource


class InfluxSettings(LineSettings):
    """Keys of the source."""

    entity: Text = key("host", "the tag that names the entity")
    name: Text | None = key(None, "the entity of points without this tag", '"pump"')
    echo: bool = key(False, "also write each line to standard output, for a processor")

    def names(self, default: str | None = None) -> Names:
        """The same for the parser."""
        return Names(entity=self.entity, fixed=self.name or default)


class InfluxSource(LineSource[InfluxSettings]):
    """One point on each line."""

    SETTINGS = InfluxSettings
    needs_step = True

    def _records(self, line: str) -> list[Record]:
        if self.settings.echo and line.strip():
            sys.stdout.write(f"{line.rstrip()}\n")
            sys.stdout.flush()
        return from_influx(line, self._names, time.time_ns())
