"""Alerts to Prometheus's Alertmanager, which drops an alert that is not sent again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from vace_ad.live.alarms import iso
from vace_ad.live.http_client import HttpSettings
from vace_ad.live.settings import Duration, HttpUrl, Table, key
from vace_ad.live.sinks import Body, HttpSink

_NAMES = {"anomaly": "VaceAnomaly", "no data": "VaceNoData", "no score": "VaceNoScore"}  # by kind
_ALIVE = 4  # repeats that may fail before an alert counts as resolved


class AlertmanagerSettings(HttpSettings):
    """Keys of the sink."""

    url: HttpUrl = key(..., "the Alertmanager", '"http://127.0.0.1:9093"')
    repeat: Duration = key("1min", "time between repeats of a firing alert")
    labels: Table | None = key(None, "labels added to each alert", '{ site = "north" }')


class AlertmanagerSink(HttpSink[AlertmanagerSettings]):
    """The API v2 of Alertmanager."""

    SETTINGS = AlertmanagerSettings
    repeat_acknowledged = True  # an alert is silenced there

    def send(self, messages: Sequence[Body]) -> None:
        """Post them together; of each alarm only the newest."""
        newest = {message["alarm"]: message for message in messages}
        alerts = [self._alert(message) for message in newest.values()]
        self.post(alerts, {"Content-Type": "application/json"}, "/api/v2/alerts")

    def _alert(self, message: Body) -> dict[str, Any]:
        until = time.time_ns() + _ALIVE * self.settings.repeat
        labels = {
            **(self.settings.labels or {}),
            "alertname": _NAMES[message["kind"]],
            "entity": message["entity"] or "source",
            "alarm": message["alarm"],
            "incident": message.get("incident") or message["alarm"],  # to group by
        }
        if message.get("level"):  # one that rises is a new alert, and the old one ends by itself
            labels["severity"] = message["level"]
        if message["channel"]:
            labels["channel"] = message["channel"]
        annotations = {
            "summary": message["summary"],
            "channels": ", ".join(one["name"] for one in message["channels"]),
            "severity": "" if message["severity"] is None else f"{message['severity']:.0f}",
            "signal": message["signal"] or "",
        }
        return {
            "labels": labels,
            "annotations": {key: value for key, value in annotations.items() if value},
            "startsAt": message["onset"],
            "endsAt": message["resolved"] or iso(until),
            "generatorURL": message["link"] or "",
        }
