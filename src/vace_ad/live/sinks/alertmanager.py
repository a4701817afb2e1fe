"""Alerts to Prometheus's Alertmanager, which forgets an alert that is not sent again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from vace_ad.live import fields as f
from vace_ad.live.alarms import iso
from vace_ad.live.fields import Field
from vace_ad.live.request import CONNECTION, Caller
from vace_ad.live.sinks import Body
from vace_ad.live.sinks.webhook import post

_NAMES = {"anomaly": "VaceAnomaly", "no data": "VaceNoData", "no score": "VaceNoScore"}  # by kind
_ALIVE = 4  # repeats that may fail before an alert counts as resolved


class AlertmanagerSink:
    """The API v2 of Alertmanager."""

    FIELDS: Mapping[str, Field] = {
        "url": Field(f.url("http", "https"), f.REQUIRED, "where it is", '"http://127.0.0.1:9093"'),
        "repeat": Field(f.duration, 60 * 10**9, "firing alerts are sent again every so often"),
        "labels": Field(f.mapping, {}, "labels added to each alert", '{ site = "north" }'),
        **CONNECTION,
    }
    repeat_acknowledged = True  # who has seen an alert silences it there

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings, self._caller = settings, Caller(settings)
        self.repeat: int | None = settings["repeat"]

    def send(self, messages: Sequence[Body]) -> None:
        """Post them together; of each alarm only the newest."""
        newest = {message["alarm"]: message for message in messages}
        url = f"{self._settings['url'].rstrip('/')}/api/v2/alerts"
        alerts = [self._alert(message) for message in newest.values()]
        post(self._caller, url, alerts, {"Content-Type": "application/json"})

    def _alert(self, message: Body) -> dict[str, Any]:
        until = time.time_ns() + _ALIVE * self._settings["repeat"]
        labels = {
            **self._settings["labels"],
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

    def close(self) -> None:
        """Nothing is open between requests."""
