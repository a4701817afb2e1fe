"""Open alarms as series of the server's own /metrics, for a Prometheus that scrapes it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from vace_ad.live.settings import Settings, key
from vace_ad.live.sinks import Body, Sink

LABELS = ("alarm", "entity", "kind", "channel", "severity")  # severity in a word


class PrometheusSettings(Settings):
    """Keys of the sink."""

    most: int = key(1000, "most alarms shown", low=1, high=100_000)


class PrometheusSink(Sink[PrometheusSettings]):
    """`vace_alarm{alarm, entity, kind, channel, severity} = 0 to 100` while an alarm is open."""

    SETTINGS = PrometheusSettings
    repeat = 60 * 10**9  # after a restart the open ones come back
    repeat_acknowledged = True

    def __init__(self, settings: PrometheusSettings) -> None:
        super().__init__(settings)
        self._lock, self._open = threading.Lock(), dict[str, Body]()

    def send(self, messages: Sequence[Body]) -> None:
        """Note which alarms are open."""
        with self._lock:
            for message in messages:
                self._open.pop(message["alarm"], None)
                if message["what"] != "resolve" and len(self._open) < self.settings.most:
                    self._open[message["alarm"]] = message

    def series(self) -> list[tuple[tuple[str, ...], float]]:
        """The labels of each open alarm, see `LABELS`, and its severity."""
        with self._lock:
            found = list(self._open.values())
        return [(_labels(one), float(one["severity"] or 0.0)) for one in found]


def _labels(alarm: Body) -> tuple[str, ...]:
    suspect = next((one["name"] for one in alarm["channels"]), "")
    entity, channel = alarm["entity"] or "source", alarm["channel"] or suspect
    return alarm["alarm"], entity, alarm["kind"], channel, alarm.get("level", "")
