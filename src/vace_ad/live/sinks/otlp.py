"""Alarms as OpenTelemetry log records, to a collector or to what takes OTLP over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vace_ad.errors import needs
from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.records import read_time
from vace_ad.live.request import CONNECTION, Caller
from vace_ad.live.sinks import Body
from vace_ad.live.sinks.webhook import post

_SEVERITY = {"open": (13, "WARN"), "update": (13, "WARN"), "resolve": (9, "INFO")}
_ATTRIBUTES = ("alarm", "what", "kind", "entity", "channel", "severity", "score", "signal",
               "incident", "onset", "resolved", "link")  # fmt: skip


class OtlpSink:
    """One log record a message, posted to `/v1/logs`."""

    FIELDS: Mapping[str, Field] = {
        "url": Field(
            f.url("http", "https"), f.REQUIRED, "the collector", '"http://127.0.0.1:4318"'
        ),
        "service": Field(f.text, "vace-watch", "the attribute service.name of our resource"),
        "repeat": Field(f.switch_off, None, "again every so often until acknowledged", '"1h"'),
        **CONNECTION,
    }
    repeat_acknowledged = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        with needs("opentelemetry-proto", "otlp", "OTLP"):
            from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
        self._service = logs_service_pb2
        self._settings, self._caller = settings, Caller(settings)
        self.repeat: int | None = settings["repeat"]
        self._url = f"{settings['url'].rstrip('/')}/v1/logs"

    def send(self, messages: Sequence[Body]) -> None:
        """Post them together."""
        request = self._service.ExportLogsServiceRequest()
        resource = request.resource_logs.add()
        resource.resource.attributes.add(key="service.name").value.string_value = self._settings[
            "service"
        ]
        scope = resource.scope_logs.add()
        scope.scope.name = "vace_ad.live"
        for message in messages:
            self._fill(scope.log_records.add(), message)
        headers = {"Content-Type": "application/x-protobuf"}
        post(self._caller, self._url, request.SerializeToString(), headers)

    def _fill(self, record: Any, message: Body) -> None:
        record.time_unix_nano = read_time(message["time"])
        record.severity_number, record.severity_text = _SEVERITY[message["what"]]
        record.body.string_value = message["summary"]
        record.event_name = f"vace.alarm.{message['what']}"
        for key in _ATTRIBUTES:
            value = message.get(key)
            if value in (None, ""):
                continue
            one = record.attributes.add(key=f"vace.{key}").value
            if isinstance(value, float | int):
                one.double_value = float(value)
            else:
                one.string_value = str(value)
        names = record.attributes.add(key="vace.channels").value.array_value
        for channel in message["channels"]:
            names.values.add(string_value=channel["name"])

    def close(self) -> None:
        """Nothing is open between requests."""
