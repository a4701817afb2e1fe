"""Open alarms as series of the server's own /metrics, for a Prometheus that scrapes it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.sinks import Body

LABELS = ("alarm", "entity", "kind", "channel", "severity")  # severity in a word


class GaugeSink:
    """`vace_alarm{alarm, entity, kind, channel, severity} = 0 to 100` while an alarm is open."""

    FIELDS: Mapping[str, Field] = {
        "most": Field(f.whole(1, 100_000), 1000, "alarms shown at most"),
    }
    repeat: int | None = 60 * 10**9  # after a restart the open ones come back
    repeat_acknowledged = True

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._most, self._lock = settings["most"], threading.Lock()
        self._open: dict[str, Body] = {}

    def send(self, messages: Sequence[Body]) -> None:
        """Note what is open."""
        with self._lock:
            for message in messages:
                self._open.pop(message["alarm"], None)
                if message["what"] != "resolve" and len(self._open) < self._most:
                    self._open[message["alarm"]] = message

    def series(self) -> list[tuple[tuple[str, ...], float]]:
        """The labels of each open alarm, see `LABELS`, and its severity."""
        with self._lock:
            found = list(self._open.values())
        return [
            (
                (
                    one["alarm"],
                    one["entity"] or "source",
                    one["kind"],
                    one["channel"] or (one["channels"] or [{"name": ""}])[0]["name"],
                    one.get("level", ""),
                ),
                float(one["severity"] or 0.0),
            )
            for one in found
        ]

    def close(self) -> None:
        """Nothing to close."""
